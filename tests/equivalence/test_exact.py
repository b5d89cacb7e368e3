"""The same recipe, only the backend changed: the same numbers, within stated tiers.

Exact (fp32, no dropout): sums are only added up in another order. Close (bf16): the products round to
eight bits, so another order of sums shows in the third digit. Statistical (dropout): masks depend on
rank and micro batch, so only means over seeds can agree.
"""

import statistics

import pytest

from tests.equivalence.cells import CLOSE, EXACT, SEEDS
from tests.equivalence.conftest import Cells
from tests.equivalence.measures import moved, norms
from tests.equivalence.started import BACKEND_NAMES
from tests.launching import distance, losses, weights

# from disk: test_disk.py
SPREAD = [name for name in BACKEND_NAMES if name not in ("single_gpu", "zero3_nvme")]
CONNECTED = {
    "multi_gpu": "multi_gpu: DistributedDataParallel over 2 ranks",
    "fsdp2": "fsdp2: ",
    "fsdp2_offload": "fsdp2_offload: ",
}


@pytest.mark.parametrize("cell", EXACT)
def test_the_cells_learn_so_that_agreement_means_something(cell: str, cells: Cells) -> None:
    runs, _ = cells("single_gpu")
    way, length = moved(runs / f"single_gpu-{cell}")
    assert way >= 0.01 * length
    curve = losses(runs / f"single_gpu-{cell}")
    assert len(curve) >= 10 and statistics.mean(curve[-4:]) <= 0.9 * statistics.mean(curve[:3])


@pytest.mark.parametrize("cell", EXACT)
@pytest.mark.parametrize("backend", SPREAD)
def test_exact(backend: str, cell: str, cells: Cells) -> None:
    runs, said = cells(backend)
    base, _ = cells("single_gpu")
    assert CONNECTED.get(backend, f"{backend}: DeepSpeedEngine over 2 ranks") in said
    ours, alone = runs / f"{backend}-{cell}", base / f"single_gpu-{cell}"
    assert losses(ours) == pytest.approx(losses(alone), abs=1e-5)
    assert norms(ours) == pytest.approx(norms(alone), abs=1e-4)
    assert distance(weights(ours / "final"), weights(alone / "final")) <= 1e-3 * moved(alone)[0]


@pytest.mark.parametrize("cell", CLOSE)
@pytest.mark.parametrize("backend", SPREAD)
def test_close(backend: str, cell: str, cells: Cells) -> None:
    """bf16 keeps 8 bits: 5 % of the way is the bound, and a real difference in method is far beyond."""
    runs, said = cells(backend)
    base, _ = cells("single_gpu")
    assert "precision bf16: linear layers compute in bfloat16" in said
    ours, alone = runs / f"{backend}-{cell}", base / f"single_gpu-{cell}"
    assert losses(ours) == pytest.approx(losses(alone), abs=2e-2)
    assert distance(weights(ours / "final"), weights(alone / "final")) <= 5e-2 * moved(alone)[0]


def test_statistical(cells: Cells) -> None:
    ends = []
    for backend in ("single_gpu", "multi_gpu"):
        runs, _ = cells(backend)
        curves = [losses(runs / f"{backend}-classifier-dropout-{seed}") for seed in SEEDS]
        ends.append([statistics.mean(curve[-6:]) for curve in curves])
    assert ends[0] != ends[1]  # the masks do differ
    error = sum(statistics.variance(each) / len(each) for each in ends) ** 0.5
    assert abs(statistics.mean(ends[0]) - statistics.mean(ends[1])) <= 4 * error


def test_another_global_batch_differs(cells: Cells) -> None:
    runs, _ = cells("single_gpu")
    pair = [losses(runs / f"single_gpu-classifier-full{end}")[:10] for end in ("", "-batch6")]
    assert max(abs(left - right) for left, right in zip(*pair, strict=True)) > 1e-3


def test_a_wrong_normalisation_is_caught(cells: Cells) -> None:
    runs, _ = cells("multi_gpu")
    pair = [losses(runs / f"multi_gpu-generator-full{end}") for end in ("", "-wrong")]
    assert max(abs(left - right) for left, right in zip(*pair, strict=True)) > 1e-3

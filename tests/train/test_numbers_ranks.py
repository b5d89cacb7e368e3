"""Steps poisoned on one of two ranks, on every kind of backend: real processes, real NaN."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import tiny
from tests.train.numbers_cells import MODULE, POISONED_RANK, SINGLE, STREAK
from tests.warm_runs import live_forked

BACKENDS = ("multi_gpu", "fsdp2", "zero2", "zero3")
OTHERS = ("zero1", "fsdp2_offload", "zero2_offload", "zero3_offload")
RECIPE = """task: classification
model: {{model_name_or_path: {folder}/bert}}
data: {{train_file: {folder}/train.csv, max_length: 40}}
training: {{global_batch_size: 12, per_device_train_batch_size: 3, learning_rate: 5.0e-3, max_steps: 12,
  logging_steps: 1, precision: fp32, seed: 7, max_skipped_steps: 2, save_steps: 2}}
tracking: {{report_to: none}}
output_dir: {folder}/runs
"""


def cells(folder: Path, backends: tuple[str, ...]) -> dict[str, Any]:
    """Run the poisoned recipe on these backends, each in a pair of processes; what was seen of each."""
    tiny.write_bert(folder / "bert")
    tiny.write_csv(folder / "train.csv", 59)
    (folder / "poisoned.yaml").write_text(RECIPE.format(folder=folder))
    for backend in backends:
        report = folder / f"{backend}.json"
        live_forked("tests.train.numbers_cells", str(folder), str(report), backend, processes=2)
    return {backend: json.loads((folder / f"{backend}.json").read_text()) for backend in backends}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """All backends, run once."""
    folder = tmp_path_factory.mktemp("poisoned")
    return folder, cells(folder, BACKENDS)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_skipped_step_leaves_weights_and_moments_bit_for_bit(
    backend: str, seen: tuple[Path, dict[str, Any]]
) -> None:
    check_skips(seen[1][backend])


def check_skips(found: dict[str, Any]) -> None:
    """NaN on one rank leaves the step out on all of them, and no other step."""
    assert found["skipped"] == [*SINGLE, *STREAK[:-1]]  # the last one ends the run
    assert found["compared"] == list(range(2, STREAK[-1]))
    assert found["unchanged"] == found["skipped"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_rank_and_the_module_are_named_on_every_backend(
    backend: str, seen: tuple[Path, dict[str, Any]]
) -> None:
    folder, report = seen
    ended = report[backend]["ended"]
    assert report[backend]["code"] == 1
    assert ended.startswith("NonFinite") and "3 steps in a row" in ended
    assert f"{MODULE} (Linear), float32" in ended and f"seen on rank {POISONED_RANK}" in ended
    assert "kept: checkpoint-7" in ended  # due at 6, taken after the next finite step
    kept = json.loads((folder / "runs" / backend / "non_finite" / f"step-{STREAK[-1]}.json").read_text())
    clean, poisoned = kept["ranks"]
    assert clean["first"] is None and clean["loss_is_finite"]
    assert poisoned["first"]["input_is_finite"] and poisoned["parameters_of_first_are_finite"]
    assert set(poisoned["rows"]) <= set(kept["rows"])
    assert sorted(sum((sum(parts, []) for parts in kept["micro_batches_of_each_rank"]), [])) == sorted(
        kept["rows"]
    )


@pytest.mark.long
def test_other_backends_leave_states_alone_too(tmp_path: Path) -> None:
    """Type: pytest -m long tests/train/test_numbers_ranks.py."""
    report = cells(tmp_path, OTHERS)
    for backend in OTHERS:
        check_skips(report[backend])
        assert f"seen on rank {POISONED_RANK}" in report[backend]["ended"]

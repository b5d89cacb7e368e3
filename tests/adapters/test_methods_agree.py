"""Every added method on real backends: the same numbers as one process, and an adapter that reloads.

Each backend runs its methods in one pair of processes. A run's own audit has seen that every trained
tensor moved and nothing frozen did. A tenth of all pairs runs every time, drawn by LAUNCHER_METHODS_SEED;
`python -m pytest -m "slow or long" tests/adapters` runs the whole product.
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import tiny
from tests.adapters.method_cells import BACKENDS_X2, VARIANTS, names_of, tenth
from tests.launching import ROOT, distance, losses, metrics, start

SEED = int(os.environ.get("LAUNCHER_METHODS_SEED", "0"))
TENTH = tenth(SEED)
ALL = [(backend, name) for backend in BACKENDS_X2 for name in names_of(backend)]
PAIRS = [pytest.param(*pair, marks=pytest.mark.slow if pair in TENTH else pytest.mark.long) for pair in ALL]
# Moments of 8 bits fall on either side of a step between two of their 256 values.
COARSE = ("full-8bit", "full-paged-8bit")


@pytest.fixture(scope="session")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny models, the rows, and the two recipes."""
    folder = tmp_path_factory.mktemp("methods")
    wide: dict[str, Any] = {"initializer_range": 0.05, "hidden_size": 64, "intermediate_size": 128}
    tiny.write_bert(folder / "bert", **wide)
    tiny.write_llama(folder / "llama", **wide)
    tiny.write_csv(folder / "train.csv", 59)
    tiny.write_csv(folder / "eval.csv", 23, seed=5)
    tiny.write_instructions(folder / "instructions.json", 59)
    for kind in ("classifier", "generator"):
        text = (ROOT / "tests" / "equivalence" / f"{kind}.yaml").read_text()
        (folder / f"{kind}.yaml").write_text(text.replace("MATERIAL", str(folder)))
    return folder


@pytest.fixture(scope="session")
def runs(material: Path, request: pytest.FixtureRequest) -> Path:
    """The folder with every run that this session's tests look at; a missing one has failed."""
    own = [
        item for item in request.session.items if item.path == Path(__file__) and hasattr(item, "callspec")
    ]
    calls = [item.callspec.params for item in own]
    pairs = sorted({(call["backend"], call["name"]) for call in calls if "backend" in call})
    wanted = {"single_gpu": [*dict.fromkeys(name for _, name in pairs)]}
    for backend, name in pairs:
        wanted.setdefault(backend, []).append(name)
    words = [f"{backend}={','.join(names)}" for backend, names in wanted.items()]
    command = [sys.executable, "-m", "tests.adapters.method_cells", str(material), *words]
    start(command, timeout_s=900 + 90 * len(pairs))
    return material / "runs"


def kept(run: Path, moment: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(run / f"{moment}.safetensors")
    return found


def norms(run: Path) -> list[float]:
    return [line["grad_norm"] for line in metrics(run) if "loss" in line]


def compare(ours: Path, alone: Path, name: str) -> None:
    """Losses, norms, and the trained tensors against the way that they went."""
    coarse = name.partition("-")[2] in COARSE
    assert losses(ours) == pytest.approx(losses(alone), abs=1e-2 if coarse else 1e-5)
    assert norms(ours) == pytest.approx(norms(alone), abs=1e-1 if coarse else 1e-4)
    start, end = kept(alone, "start"), kept(alone, "end")
    way = distance(start, end)
    assert way > 0.01 * distance(start, {key: value * 0 for key, value in start.items()})
    assert distance(kept(ours, "end"), end) <= (0.2 if coarse else 1e-3) * way


def check_reloaded(run: Path, alone: Path, name: str) -> None:
    """The exported model in this process, which has not trained it, says what the trained one said."""
    import torch
    from safetensors.torch import load_file

    from launcher.export.predict import Predictor

    held = load_file(alone / "logits.safetensors")
    model = Predictor(run).model
    with torch.no_grad():
        found = [
            model(input_ids=ids[ids >= 0].unsqueeze(0), attention_mask=torch.ones_like(ids[ids >= 0])[None])
            for ids in held["rows"]
        ]
    logits = torch.stack([each.logits.flatten(0, -2)[-1].float() for each in found])
    # packed products are rounded to 16 bits: adapters that differ in the sixth digit may fall on either side
    bound = 2e-2 if name.endswith("qlora") else 0.2 if name.partition("-")[2] in COARSE else 1e-4
    assert (logits - held["logits"]).abs().max() <= bound * held["logits"].abs().max()


@cache
def check_alone(alone: Path, name: str) -> None:
    """The run of one process, once for all backends that are compared with it."""
    check_reloaded(alone, alone, name)


@pytest.mark.parametrize(("backend", "name"), PAIRS)
def test_the_same_numbers_on_every_backend(backend: str, name: str, runs: Path) -> None:
    ours, alone = runs / f"{backend}-{name}", runs / f"single_gpu-{name}"
    for run, on in ((alone, "single_gpu"), (ours, backend)):
        log = runs.parent / f"{on}.log"
        assert (run / "summary.json").is_file(), log.read_text()[-6000:] if log.is_file() else "not started"
    compare(ours, alone, name)
    check_alone(alone, name)
    check_reloaded(ours, alone, name)


@pytest.mark.parametrize("seed", range(5))
def test_a_tenth_has_every_method_and_every_backend(seed: int) -> None:
    drawn = tenth(seed)
    assert {name.partition("-")[2] for _, name in drawn} == set(VARIANTS)
    assert {backend for backend, _ in drawn} == set(BACKENDS_X2)
    assert set(drawn) <= set(ALL) and len(drawn) == len(set(drawn)) <= 0.12 * len(ALL)


def test_another_seed_draws_others() -> None:
    assert tenth(1) == tenth(1) != tenth(2)

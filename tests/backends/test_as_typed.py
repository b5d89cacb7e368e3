"""Every backend by every starter, as typed from the clone's root, to the end: the numbers of one process.

A few cells run always; all of them with `pytest -m long tests/backends`.
"""

import os
from pathlib import Path

import pytest

from launcher.backends.operators import ASYNC_IO, is_compiled
from launcher.backends.options import BACKENDS
from launcher.hardware.ports import free_port
from tests import tiny
from tests.launching import BIN, RUN, losses, trained

ALONE = {"model_parallel": "one CPU is one device: there is nothing to spread layers over"}
_QUICK = {("accelerate", "single_gpu"), ("accelerate", "fsdp2"), ("deepspeed", "zero3_offload")}
_RECIPE = """task: classification
model: {{model_name_or_path: {folder}/bert}}
data: {{train_file: {folder}/train.csv, eval_file: {folder}/eval.csv, max_length: 40}}
training: {{global_batch_size: 12, per_device_train_batch_size: 3, max_steps: 4, logging_steps: 1,
           learning_rate: 5e-3, adam_epsilon: 1e-6, precision: fp32, seed: 7}}
output_dir: {folder}/runs
"""


def _cells() -> list[object]:
    """Accelerate starts every backend with its YAML, DeepSpeed the ZeRO ones with their JSON."""
    found = [("accelerate", backend.name) for backend in BACKENDS if backend.name not in ALONE]
    found += [("deepspeed", backend.name) for backend in BACKENDS if backend.ds_config is not None]
    return [
        pytest.param(*cell, id="-".join(cell), marks=pytest.mark.slow if cell in _QUICK else pytest.mark.long)
        for cell in found
    ]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny classifier, its rows and its recipe."""
    folder = tmp_path_factory.mktemp("typed")
    tiny.write_bert(folder / "bert")
    tiny.write_csv(folder / "train.csv", 59)
    tiny.write_csv(folder / "eval.csv", 23, seed=5)
    (folder / "tiny.yaml").write_text(_RECIPE.format(folder=folder))
    return folder


@pytest.fixture(scope="module")
def alone(material: Path) -> list[float]:
    """The losses of one process."""
    words = ["--recipe", str(material / "tiny.yaml"), "--name", "alone"]
    trained([str(BIN / "python"), RUN, *words], timeout_s=600)
    return losses(material / "runs" / "alone")


def typed(starter: str, backend: str) -> list[str]:
    """What stands before the recipe, from the clone's root; two processes where there can be two."""
    if starter == "accelerate":
        port = ["--main_process_port", str(free_port())] if BACKENDS.get(backend).max_ranks != 1 else []
        return [
            str(BIN / "accelerate"),
            "launch",
            "--config_file",
            f"accelerate_configs/{backend}.yaml",
            *port,
            RUN,
        ]
    head = [str(BIN / "deepspeed"), "--master_port", str(free_port()), "--num_gpus", "2"]
    return [*head, RUN, "--ds", f"ds_configs/{backend}.json"]


@pytest.mark.parametrize(("starter", "backend"), _cells())
def test_runs_to_the_end_as_typed(starter: str, backend: str, material: Path, alone: list[float]) -> None:
    if backend == "zero3_nvme" and not is_compiled(ASYNC_IO, os.environ):
        pytest.skip("async_io is not compiled; type: python -m launcher.backends.build_torch async_io")
    name = f"{starter}-{backend}"
    words = [*typed(starter, backend), "--recipe", str(material / "tiny.yaml"), "--name", name]
    if backend == "zero3_nvme":
        words.append(f"nvme_path={material / 'disk'}")
    said = trained(words, timeout_s=600).stderr
    ranks = 1 if BACKENDS.get(backend).max_ranks == 1 else 2
    assert f"backend {backend} on {ranks} cpu process(es)" in said
    assert losses(material / "runs" / name) == pytest.approx(alone, abs=1e-5)
    assert (material / "runs" / name / "final").is_dir()


def test_every_backend_and_starter_has_its_cell() -> None:
    cells = {cell.values for cell in _cells()}  # type: ignore[attr-defined]
    for backend in BACKENDS:
        assert ("accelerate", backend.name) in cells or backend.name in ALONE
        assert (("deepspeed", backend.name) in cells) is ("deepspeed" in backend.starters)
    assert cells >= _QUICK

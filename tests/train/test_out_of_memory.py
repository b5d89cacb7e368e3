"""Memory that runs out: in place nothing is lost; elsewhere a restart takes over what was noted."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from launcher.errors import EXIT_RESUMABLE
from launcher.train.out_of_memory import Shortage, asked_bytes, cause, is_out_of_memory, shortage
from launcher.train.retry import pieces
from tests import tiny
from tests.faults.rank import install
from tests.faults.warm import Ended, run_ranks, warm_up
from tests.launching import distance, losses, weights
from tests.train.conftest import WriteRecipe


def run(backend: str, recipe: Path, name: str, *faults: dict[str, Any], more: tuple[str, ...] = ()) -> Ended:
    """A run in forks of this process, as torchrun starts it, with these faults."""
    warm_up()
    words = ["--recipe", str(recipe), "--name", name, "--backend", backend, *more]
    return run_ranks(
        words,
        num_ranks=1 if backend == "single_gpu" else 2,
        log=recipe.parent / f"{name}.log",
        install=lambda rank: install([dict(fault) for fault in faults if fault.get("rank", 0) == rank]),
    )


def calm(backend: str, recipe: Path) -> None:
    """The same without a fault."""
    ended = run(backend, recipe, "calm")
    assert ended.succeeded, ended.text[-4000:]


def same(left: Path, right: Path) -> None:
    """Losses and weights up to the rounding of another cut."""
    assert losses(left) == pytest.approx(losses(right), rel=1e-5)
    found, wanted = weights(left / "final"), weights(right / "final")
    size = sum(float((tensor.double() ** 2).sum()) for tensor in wanted.values()) ** 0.5
    assert distance(found, wanted) <= 1e-4 * size  # Adam divides by tiny moments: elements differ more


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_one_process_runs_the_step_again_in_halves(phase: str, classifier: WriteRecipe) -> None:
    recipe = classifier(per_device_train_batch_size=6)
    runs = recipe.parent / "runs"
    calm("single_gpu", recipe)
    done = run("single_gpu", recipe, "faulty", {"phase": phase, "step": 4, "micro": 2, "times": 1})
    assert done.succeeded, done.text[-4000:]
    assert f"out of memory in {phase}" in done.text and "3 rows at once instead of 6" in done.text
    same(runs / "faulty", runs / "calm")
    noted = json.loads((runs / "faulty" / "resume.json").read_text())
    assert noted["changes"] == {"training.per_device_train_batch_size": 3}


def test_it_halves_until_single_rows_and_then_ends_resumable(classifier: WriteRecipe) -> None:
    recipe = classifier(save_steps=2)
    done = run("single_gpu", recipe, "faulty", {"phase": "backward", "step": 4, "times": 99})
    assert done.codes == [EXIT_RESUMABLE], done.text[-4000:]
    assert "out of memory in backward" in done.text and "activation_checkpointing=true" in done.text
    noted = json.loads((recipe.parent / "runs/faulty/resume.json").read_text())
    assert noted["changes"]["training.activation_checkpointing"] is True
    again = run("single_gpu", recipe, "faulty", {"phase": "forward", "step": 99}, more=("--resume",))
    assert again.succeeded, again.text[-4000:]
    assert "resume.json (out of memory in backward at step 4)" in again.text


def test_evaluation_goes_on_in_halves(classifier: WriteRecipe) -> None:
    recipe = classifier(num_train_epochs=1)
    runs = recipe.parent / "runs"
    calm("single_gpu", recipe)
    done = run("single_gpu", recipe, "faulty", {"phase": "evaluation", "step": 5})
    assert done.succeeded, done.text[-4000:]
    quality = [
        json.loads((runs / name / "summary.json").read_text())["quality"] for name in ("calm", "faulty")
    ]
    assert quality[0] == pytest.approx(quality[1], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        {"phase": "forward", "micro": 1},
        {"phase": "backward", "micro": 1},
        {"phase": "backward", "micro": 2},
        {"phase": "late backward", "micro": 2},
    ],
    ids=lambda fault: f"{fault['phase']}-{fault['micro']}",
)
def test_ddp_takes_the_window_back_on_every_rank(
    fault: dict[str, Any], classifier: WriteRecipe, material: Path
) -> None:
    sizes = {"hidden_size": 128, "num_hidden_layers": 4, "intermediate_size": 512}
    if not (material / "wide").exists():  # several of DDP's buckets
        tiny.write_bert(material / "wide", **sizes)
    recipe = classifier(model="wide", num_train_epochs=2, learning_rate=1e-3)
    recipe.write_text(recipe.read_text() + "backend: {name: multi_gpu, bucket_cap_mb: 1}\n")
    runs = recipe.parent / "runs"
    calm("multi_gpu", recipe)
    done = run("multi_gpu", recipe, "faulty", fault | {"step": 5, "rank": 1})
    assert done.succeeded, done.text[-4000:]
    same(runs / "faulty", runs / "calm")
    assert "out of memory in another rank" in done.text


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["zero2", "fsdp2", "multi_gpu"])
def test_where_others_wait_the_run_ends_resumable_and_the_restart_takes_over(
    backend: str, classifier: WriteRecipe
) -> None:
    recipe = classifier(save_steps=2)
    runs = recipe.parent / "runs"
    phase = "optimizer" if backend == "multi_gpu" else "backward"
    calm(backend, recipe)
    done = run(backend, recipe, "faulty", {"phase": phase, "step": 4, "rank": 1})
    assert EXIT_RESUMABLE in done.codes
    assert "out of memory in" in done.text and "--resume" in done.text, done.text[-3000:]
    noted = json.loads((runs / "faulty/resume.json").read_text())
    assert noted["changes"] == {"training.per_device_train_batch_size": 1}
    again = run(backend, recipe, "faulty", {"phase": "forward", "step": 99}, more=("--resume",))
    assert again.succeeded, again.text[-4000:]
    assert "resumed from" in again.text
    same(runs / "faulty", runs / "calm")


def test_what_counts_as_memory_that_ran_out() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value) and asked_bytes(str(caught.value)) == 2**60
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB."))
    assert asked_bytes("CUDA out of memory. Tried to allocate 20.00 MiB.") == 20 * 2**20
    assert is_out_of_memory(MemoryError()) and not is_out_of_memory(RuntimeError("shape mismatch"))
    assert shortage(caught.value, "forward", torch.device("cpu")).phase == "forward"


def test_the_cause_is_told_apart() -> None:
    pieces_lie_about = Shortage(
        phase="forward", asked_bytes=10, allocated_bytes=50, reserved_bytes=70, total_bytes=80
    )
    assert "fragmentation" in cause(pieces_lie_about, [5], 5)
    full = Shortage(phase="forward", asked_bytes=10, allocated_bytes=75, reserved_bytes=75, total_bytes=80)
    assert "a row of 512 tokens" in cause(full, [30, 512], 37)
    assert "usual" in cause(full, [30, 40], 37)


def test_pieces_keep_every_row_in_order() -> None:
    batch = {"input_ids": torch.arange(7)[:, None], "labels": torch.arange(7)}
    parts = pieces(batch, 4)
    assert [len(part["labels"]) for part in parts] == [2, 2, 2, 1]
    assert torch.equal(torch.cat([part["input_ids"] for part in parts]), batch["input_ids"])

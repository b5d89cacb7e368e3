"""The steady state never makes a device wait for the host: no tensor's value is asked for in a step."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import launcher.train.rank as rank
from launcher.train.job import Job
from tests.train.conftest import WriteRecipe
from tests.train.test_numbers_run import run

# The first steps are looked at on purpose: precision, memory, movement.
STEADY = 6
# Folders of the step and its guards; a model's own code may look at its mask.
OWN = ("train", "callbacks", "step", "backends", "optim", "launcher")


class Reads(TorchDispatchMode):
    """Counts, by source file, who asks for a tensor's value; on a GPU each of them would be a wait."""

    def __init__(self, job: Job) -> None:
        """Look at the job's steps, not at the evaluation behind the last one."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.job = job
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the file of the innermost caller outside torch."""
        if func is torch.ops.aten._local_scalar_dense.default and self._is_steady():
            self.found[_caller(sys._getframe(1))] += 1
        return func(*args, **(kwargs or {}))

    def _is_steady(self) -> bool:
        return STEADY <= self.job.progress.step < self.job.total_steps


def _caller(frame: FrameType | None) -> str:
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if "torch" not in path.parts and path.name != Path(__file__).name:
            return "/".join(path.parts[-2:])
        frame = frame.f_back
    return "?"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, str], Counter[str]]:
    """Runs a recipe and tells who read a tensor's value in its steady state."""

    def look(recipe: Path, *words: str) -> Counter[str]:
        train = rank.train
        seen: list[Counter[str]] = []

        def watched(job: Job, *rest: Any) -> None:
            with Reads(job) as found:
                train(job, *rest)
            seen.append(found.found)

        monkeypatch.setattr(rank, "train", watched)
        _, error = run(recipe, *words)
        monkeypatch.setattr(rank, "train", train)
        assert error is None
        return seen[0]

    return look


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_guards_read_nothing_from_the_device(
    precision: str, classifier: WriteRecipe, reads: Callable[..., Counter[str]]
) -> None:
    found = reads(classifier(precision=precision, logging_steps=2))
    assert [file for file in found if file.split("/")[0] in OWN] == []


def test_the_look_itself_sees_a_read(classifier: WriteRecipe, reads: Callable[..., Counter[str]]) -> None:
    """torch's plain AdamW is skipped on the host, which has to know: that read must be seen."""
    found = reads(classifier(optim="adamw_torch"))
    assert found["backends/plain_torch.py"] >= 5

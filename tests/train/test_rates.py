"""Rows a second are over whole steps, however early or late a step's numbers are taken in."""

import time
from collections.abc import Sequence
from typing import Any

import pytest

import launcher.train.rank as rank
from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.state import StepRecord
from tests.train.conftest import WriteRecipe
from tests.train.test_numbers_run import run


class Every2(Callback):
    """Makes every second step be taken in at once; the others are while the next one runs."""

    def __init__(self, job: Job) -> None:
        self.handed: list[float] = []
        self.forward: list[float] = []
        job.module.register_forward_pre_hook(lambda *_: self.forward.append(time.perf_counter()))

    def on_record(self, job: Job, record: StepRecord) -> None:
        self.handed.append(record.handed_s)

    def is_due(self, job: Job, step: int) -> bool:
        return step % 2 == 0

    def run(self, job: Job) -> None:
        return


def test_a_steps_time_ends_before_the_next_one_begins(
    classifier: WriteRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, seen = rank.train, []

    def watched(job: Job, callbacks: Sequence[Callback], *rest: Any) -> None:
        seen.append(Every2(job))
        train(job, [*callbacks, seen[0]], *rest)

    monkeypatch.setattr(rank, "train", watched)
    _, error = run(
        classifier(max_steps=6, global_batch_size=4, per_device_train_batch_size=4), "memory_probe=false"
    )
    assert error is None
    handed, forward = seen[0].handed, seen[0].forward[:6]
    assert len(handed) == len(forward) == 6
    assert all(a < b for a, b in zip(forward, handed, strict=True))
    assert all(a < b for a, b in zip(handed, forward[1:], strict=False))

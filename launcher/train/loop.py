"""The loop: windows of data in, steps out. No backend's name, no file, no decision of its own."""

import time
from collections.abc import Generator, Sequence
from contextlib import closing

import torch

from launcher import heartbeat
from launcher.data.batches_torch import Window, windows
from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.retry import Retry
from launcher.train.state import PendingStep


def train(job: Job, callbacks: Sequence[Callback], retry: Retry) -> None:
    """Run from `job.progress.step` to the end, callbacks included."""
    job.strategy.module.train()
    loop = _Loop(job, callbacks, retry)
    with closing(_windows(job)) as stream:
        for window in stream:
            loop.run(window)
            heartbeat.beat("waiting for data")
            if job.stop.is_agreed(job.world):
                break
    loop.settle()


def _windows(job: Job) -> Generator[Window, None, None]:
    start = job.progress.step
    yield from windows(
        job.store,
        job.order,
        job.plan.step,
        job.world.rank,
        start,
        job.segment_end - start,
        job.tokenizer.pad_token_id,
        job.recipe.data.dataloader_num_workers,
        job.world.device.type == "cuda",
        job.recipe.data.pad_to_multiple_of,
        job.recipe.data.micro_batch_tokens,
    )


class _Loop:
    """The state between two steps: the step that is not settled yet."""

    def __init__(self, job: Job, callbacks: Sequence[Callback], retry: Retry) -> None:
        self.job = job
        self.retry = retry
        self.callbacks = callbacks
        self.pending: PendingStep | None = None
        self.started = time.perf_counter()

    def run(self, window: Window) -> None:
        """One global step. The previous step is settled after this one's work has been handed over."""
        job, step = self.job, window.step + 1
        heartbeat.beat("handing over", step)
        with job.measure.phase("forward and backward"):
            share = self.retry.run(window)
        self.settle()
        factor = job.rate_factor(job.progress.updates)
        job.strategy.set_learning_rate(factor)
        with job.measure.phase("optimizer"), self.retry.guarded("the optimizer's step", step):
            outcome = job.strategy.step()
        self._push(window, share, outcome.grad_norm, outcome.skipped, factor)
        for callback in self.callbacks:
            if callback.is_due(job, step):
                self.settle()
                self._run(callback)

    def _push(
        self, window: Window, share: torch.Tensor, norm: torch.Tensor, skipped: torch.Tensor, factor: float
    ) -> None:
        job, step = self.job, window.step + 1
        job.unlogged.add(share)
        is_logged = step % job.recipe.training.logging_steps == 0 or step == job.segment_end
        asked = job.stop.vote(job.world.device)
        mean = [job.unlogged.take()] if is_logged else []
        summed = job.world.sum(torch.stack([share, asked, *mean]))  # one small reduction for all of them
        loss = summed[2] if is_logged else summed[0]
        self.pending = PendingStep(
            torch.stack([loss, summed[0], norm, skipped, share, job.strategy.loss_scale.scale, summed[1]]),
            step=step,
            num_targets=window.num_targets,
            learning_rate=job.plan.learning_rate * factor,
            epoch=window.epoch,
            is_logged=is_logged,
            handed_s=time.perf_counter(),
        )
        self.window = window

    def settle(self) -> None:
        """Take in the pending step's numbers and tell the callbacks."""
        if self.pending is None:
            return
        record, progress = self.pending.settle(), self.job.progress
        self.pending = None
        progress.step, progress.epoch = record.step, record.epoch
        self.job.stop.settle(record.stop_asked)
        progress.updates += not record.skipped
        progress.skipped_in_a_row = progress.skipped_in_a_row + 1 if record.skipped else 0
        progress.rows += self.window.num_rows
        progress.tokens += self.window.num_tokens
        now = time.perf_counter()
        progress.train_seconds += now - self.started
        self.started = now
        for callback in self.callbacks:
            callback.on_record(self.job, record)

    def _run(self, callback: Callback) -> None:
        start = time.perf_counter()
        phase = callback.phase or type(callback).__name__.lower()
        with (
            self.job.measure.phase(callback.phase),
            self.retry.guarded(phase, self.job.progress.step),
        ):
            callback.run(self.job)
        spent = time.perf_counter() - start
        self.started += spent
        for other in self.callbacks:
            other.pause(spent)

"""Windows of data through forward and backward; what ran out of memory is run again in smaller pieces.

The global batch, its rows and their order stay the same: only the cut changes, and it stays finer from then
on. Where a rank cannot take its work back, the run ends resumable and `resume.json` says what to change.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from launcher.adapters.options import METHODS
from launcher.backends.strategy_torch import CannotCatchUp
from launcher.data.batches_torch import Batch, Window
from launcher.errors import OutOfMemory
from launcher.plan.known_shape import known_shape
from launcher.plan.levers import CHECKPOINTING, MICRO, typed
from launcher.plan.resume_file import write_resume
from launcher.plan.savings import Saving, savings
from launcher.step.micro import accumulate
from launcher.train.job import Job
from launcher.train.out_of_memory import Shortage, amounts, cause, is_out_of_memory, out_of_memory, shortage

TOKENS = "data.micro_batch_tokens"
T = TypeVar("T")


class Retry:
    """Runs windows on a job's strategy. `num_pieces`: into how many every micro batch is cut by now."""

    def __init__(self, job: Job) -> None:
        """Nothing has failed yet."""
        self.job = job
        self.num_pieces = 1

    def run(self, window: Window, *, spoilt: bool = False) -> Tensor:
        """This rank's share of the mean loss, after backward. Raises OutOfMemory where no cut helps.

        `spoilt`: as in `accumulate`, for a probe.
        """
        while True:
            share, failure = self._attempt(window, spoilt=spoilt)
            if not self.job.strategy.recovers:
                if failure is not None:
                    raise self._end(failure, window)
                return share
            rows = self._most_rows(window)
            if not self._somebody_failed(failure, window):
                self.job.strategy.finish()
                return share
            self._cut_finer(failure, window, rows)

    def _attempt(self, window: Window, *, spoilt: bool) -> tuple[Tensor, Shortage | None]:
        job = self.job
        nothing = torch.zeros((), device=job.world.device)
        batches = [part for batch in window.micro_batches for part in pieces(batch, self.num_pieces)]
        try:
            share = accumulate(
                job.strategy,
                batches,
                num_targets=window.num_targets,
                seed=job.recipe.training.seed,
                step=window.step,
                rank=job.world.rank,
                spoilt=spoilt,
            )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return nothing, shortage(error, "forward", job.world.device)
        return share, None

    def _somebody_failed(self, failure: Shortage | None, window: Window) -> bool:
        if failure is not None:
            free_what_is_unused(self.job.world.device)
            try:
                self.job.strategy.catch_up()
            except CannotCatchUp:
                raise self._end(failure, window) from None
        return bool(self.job.strategy.vote(int(failure is not None)))

    def _cut_finer(self, failure: Shortage | None, window: Window, rows: int) -> None:
        """Every rank, in step: forget the window, halve its pieces. Raises OutOfMemory at single rows."""
        job, said = self.job, failure or Shortage(phase="another rank", asked_bytes=0)
        job.strategy.abandon()
        free_what_is_unused(job.world.device)
        if job.strategy.vote(rows) <= 1:
            error = self._end(said, window)
            error.concerns_one_rank = failure is not None
            raise error
        self.num_pieces *= 2
        sizes = amounts(said)
        job.say(
            f"step {window.step + 1}: out of memory in {said.phase}{f' ({sizes})' if sizes else ''}; "
            f"{self._why(said, window)}. The step is run again with {-(-rows // 2)} rows at once instead of "
            f"{rows}: same global batch, same rows, nothing lost"
        )
        if job.world.is_first:
            self._note(f"out of memory in {said.phase} at step {window.step + 1}", self._smaller())

    def _most_rows(self, window: Window) -> int:
        """Rows of the largest piece that was tried."""
        return max(-(-len(batch["input_ids"]) // self.num_pieces) for batch in window.micro_batches)

    def _smaller(self) -> dict[str, object]:
        """The keys that give this cut from the start."""
        job, tokens = self.job, self.job.recipe.data.micro_batch_tokens
        if tokens is not None:
            return {TOKENS: max(1, tokens // self.num_pieces)}
        return {MICRO: max(1, job.plan.step.micro_batch_size // self.num_pieces)}

    def next_try(self) -> dict[str, object]:
        """What to change for a continued run: half the rows at once, then recomputed activations."""
        job = self.job
        if job.plan.step.micro_batch_size // self.num_pieces > 1:
            self.num_pieces *= 2
            return self._smaller()
        can_recompute = not METHODS.get(job.recipe.adapter.method).needs_cache
        if can_recompute and not job.recipe.training.activation_checkpointing:
            return self._smaller() | {CHECKPOINTING: True}
        return {}

    @contextmanager
    def guarded(self, phase: str, step: int) -> Iterator[None]:
        """Around work that cannot be taken back. Raises OutOfMemory, with what to change noted."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            failure = shortage(error, phase, self.job.world.device)
            raise self.ended(failure, step=step, why="This cannot be run again in place.") from None

    def _end(self, failure: Shortage, window: Window) -> OutOfMemory:
        """End resumable: what to change lies in the run folder."""
        return self.ended(failure, step=window.step + 1, why=self._why(failure, window))

    def ended(self, failure: Shortage, *, step: int, why: str) -> OutOfMemory:
        """Note what to change, and give the error to raise."""
        changes = self.next_try()
        reason = f"out of memory in {failure.phase} at step {step}"
        line = self._note(reason, changes)
        return out_of_memory(failure, where=f"step {step}", why=why, levers=self._levers(), typed=line)

    def _note(self, reason: str, changes: dict[str, object]) -> str:
        taken = f": it takes over {typed(changes)}" if changes else ", with one of these changes"
        line = f"the same command with --resume{taken}"
        write_resume(self.job.folder, reason=reason, changes=changes, typed=line)
        return line

    def _why(self, failure: Shortage, window: Window) -> str:
        lengths = self.job.order.lengths
        rows = self.job.order.window(window.step)
        return cause(failure, lengths[rows].tolist(), int(np.median(lengths)))

    def _levers(self) -> Sequence[Saving]:
        shape = known_shape(self.job.recipe)
        return savings(self.job.recipe, shape, self.job.plan) if shape else ()


def pieces(batch: Batch, count: int) -> list[Batch]:
    """The batch's rows in at most `count` parts of like size, in their order."""
    rows = len(batch["input_ids"])
    size = -(-rows // count)
    return [
        {name: tensor[start : start + size] for name, tensor in batch.items()}
        for start in range(0, rows, size)
    ]


def in_pieces(batch: Batch, run: Callable[[Batch], T], device: torch.device) -> list[T]:
    """`run` on the batch; where memory runs out, on its halves, and so on. For work without collectives."""
    try:
        return [run(batch)]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error) or len(batch["input_ids"]) < 2:
            raise
    free_what_is_unused(device)
    return [found for half in pieces(batch, 2) for found in in_pieces(half, run, device)]


def free_what_is_unused(device: torch.device) -> None:
    """Give cached blocks back to the device, so that smaller pieces find room in one."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()

"""Gradual unfreezing: a run in segments, each with an engine of its own over the tensors that are open.

Engines divide, flatten and register what trains when they are built (DDP's reducer, ZeRO's partitions): a
flag that is flipped later trains nothing, or lets ranks drift apart, without an error. So a segment ends with
a checkpoint and its engine is taken down; the next one is built as a resumed run builds it, from the base
model and that checkpoint. What opens starts without moments and with its own count of updates; the learning
rate's schedule counts the run's updates and does not notice.
"""

import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from launcher.errors import Problem, TrainError
from launcher.train.audit import marks
from launcher.train.callbacks.callback import Callback
from launcher.train.callbacks.save import Save
from launcher.train.checkpoint import load
from launcher.train.checkpoint_files import place_of
from launcher.train.job import Job

if TYPE_CHECKING:
    from torch import nn

_WRAPPED = "model."


def open_at(openings: dict[str, int], step: int) -> set[str]:
    """The parameters that train in the step that follows `step` settled ones."""
    return {name for name, start in openings.items() if start <= step}


def apply(model: "nn.Module", openings: dict[str, int], step: int) -> None:
    """Open what the schedule has opened by then, and nothing else. No schedule: as the method left it."""
    if not openings:
        return
    chosen = open_at(openings, step)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in chosen)


def opened_at(job: Job) -> dict[str, int]:
    """After how many updates each open parameter began to train, under its name in the step's module."""
    began = job.progress.phase_updates
    return {
        f"{_WRAPPED}{name}": began[str(start)] for name, start in job.openings.items() if str(start) in began
    }


def segments(job: Job, callbacks: Sequence[Callback]) -> Iterator[None]:
    """Yields once a segment, the engine for it in place; run the loop up to `job.segment_end` in between."""
    yield
    while job.progress.step < job.total_steps and not job.stop.is_agreed(job.world):
        before = job.num_trained
        _end_segment(job, callbacks)
        job.note_phases()
        rebuild(job, job.progress.step)
        load(job, place_of(job.folder, job.progress.step))
        for callback in callbacks:
            callback.reopened(job)
        job.say(
            f"opened {job.num_trained - before:,} parameters at step {job.progress.step}: "
            f"{job.num_trained:,} of {job.num_parameters:,} train"
        )
        yield
    if job.starts:
        _require_equal(job)


def _end_segment(job: Job, callbacks: Sequence[Callback]) -> None:
    """Compare the ranks, and save where the interval has not just done so."""
    _require_equal(job)
    next(each for each in callbacks if isinstance(each, Save)).require_saved(job)


def rebuild(job: Job, step: int) -> None:
    """An engine over what is open after `step` steps, with the base model's weights. Every rank calls."""
    job.strategy.release()
    job.strategy.close()
    del job.strategy, job.module
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    assert job.build is not None
    job.build(job, step)
    job.say(job.strategy.check())


def _require_equal(job: Job) -> None:
    """Every rank computes with the same opened weights. Raises TrainError with what differs."""
    trained = {name for name, _ in job.strategy.named_trainable()}
    found = marks(_each(job, trained))
    on_ranks = job.world.gather(found)
    odd = sorted(name for name in found if any(part[name] != found[name] for part in on_ranks))
    if odd:
        raise TrainError(
            Problem(
                where=f"step {job.progress.step}",
                what=f"{len(odd)} trained tensors differ between ranks: {', '.join(odd[:5])}",
                right="equal weights on every rank after each phase",
                type="backend: single_gpu, and report this with the run's plan.json",
            )
        )
    total = sum(found.values()) % 2**64
    job.say(f"phase ends at step {job.progress.step}: opened tensors are equal on all ranks ({total:016x})")


def _each(job: Job, names: set[str]) -> Iterable[tuple[str, torch.Tensor]]:
    for name, tensor in job.strategy.whole_weights():
        if name in names:
            yield name, tensor

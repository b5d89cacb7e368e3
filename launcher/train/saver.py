"""When and by whom a checkpoint is written: at once, or from a copy in host memory while training goes on.

In the background a thread of every rank writes its share and the threads agree over a process group of
their own, so that they never meet the training's collectives. The copy stays allocated: the next save
fills it again. One save at a time: the next one waits for the one before.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from launcher.hardware.available import available_bytes
from launcher.train.checkpoint import contents, shards
from launcher.train.checkpoint_files import place_of, prune
from launcher.train.checkpoint_write import Writing
from launcher.train.job import Job
from launcher.train.save_failure import Failure, failure_of
from launcher.train.world import World
from launcher.units import format_bytes

# Share of the free host memory that a copy may take where the recipe leaves it open.
_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Saved:
    """How a save ended: `pause_s` is what training waited for it, `write_s` what the writing took."""

    name: str
    step: int
    failure: Failure | None
    pause_s: float
    write_s: float
    in_background: bool = False
    note: str = ""


class Saver:
    """Writes this job's checkpoints. Every rank makes one and calls the same methods in the same order."""

    def __init__(self, job: Job, *, limit: int | None) -> None:
        """`limit`: checkpoints kept beside the best. Takes no memory before the first save."""
        self.limit = limit
        self.copies = _Copies(pinned=job.world.device.type == "cuda")
        self.in_background, self.why = in_background(job)
        self.world = _own_group(job.world) if self.in_background else job.world
        self.thread: threading.Thread | None = None
        self.ended: Saved | None = None

    def save(self, job: Job, *, at_once: bool = False) -> None:
        """Begin a checkpoint of the current step; `at_once`: return when it is written. Wait with `wait`."""
        assert self.thread is None, "the save before must be waited for, and told of"
        started = time.perf_counter()
        facts = contents(job)
        background = self.in_background and not at_once
        world = self.world if background else job.world
        job_of_save = _Save(
            writing=Writing(job.folder, world, facts),
            name=place_of(job.folder, facts.step).name,
            limit=self.limit,
            keep=job.progress.best_step,
        )
        if not background:
            self.ended = job_of_save.run(shards(job), pause_from=started)
            return
        held = [*shards(job, self.copies.fill)]
        self.copies.arrive()
        pause_s = time.perf_counter() - started
        self.thread = threading.Thread(target=self._work, args=(job_of_save, held, pause_s), daemon=True)
        self.thread.start()

    def _work(self, save: "_Save", held: list[Mapping[str, Tensor]], pause_s: float) -> None:
        self.ended = replace(save.run(held), pause_s=pause_s, in_background=True)

    def poll(self) -> Saved | None:
        """How the save ended, once, where one has; never waits."""
        if self.thread is not None and self.thread.is_alive():
            return None
        self.thread = None
        ended, self.ended = self.ended, None
        return ended

    def wait(self) -> Saved | None:
        """As `poll`, after the save under way has ended."""
        if self.thread is not None:
            self.thread.join()
        return self.poll()


@dataclass(frozen=True, kw_only=True)
class _Save:
    """One save: what to write, and what to remove once that is whole."""

    writing: Writing
    name: str
    limit: int | None
    keep: int | None

    def run(self, held: Any, *, pause_from: float | None = None) -> Saved:
        """Write and prune. Raises nothing: a failure is told by what is returned."""
        started = time.perf_counter()
        note = ""
        try:
            failure = self.writing.run(held)
            if failure is None and self.writing.world.is_first:
                note = self._prune()
        except Exception as error:
            if pause_from is not None:  # not in a thread: the training's own error, told by the training
                raise
            failure = self.writing.failure(error)
        now = time.perf_counter()
        return Saved(
            name=self.name,
            step=self.writing.contents.step,
            failure=failure,
            pause_s=now - (pause_from or now),
            write_s=now - started,
            note=note,
        )

    def _prune(self) -> str:
        folder, step = self.writing.folder, self.writing.contents.step
        try:
            prune(folder, limit=self.limit, keep=self.keep, newest=step)
        except OSError as error:
            failed = failure_of(error, name=self.name, folder=folder, needed_bytes=0, rank=0)
            return f"an old checkpoint could not be removed: {failed.reason}"
        return ""


class _Copies:
    """Host memory that a save is copied into, allocated by the first one and filled again by the next."""

    def __init__(self, *, pinned: bool) -> None:
        self.pinned = pinned
        self.held: dict[str, Tensor] = {}

    def fill(self, name: str, tensor: Tensor) -> Tensor:
        """Start copying a tensor into its place."""
        place = self.held.get(name)
        if place is None or place.shape != tensor.shape:
            place = torch.empty(tensor.shape, dtype=torch.float32, pin_memory=self.pinned)
            self.held[name] = place
        place.copy_(tensor.detach(), non_blocking=self.pinned)
        return place

    def arrive(self) -> None:
        """Wait until every copy has arrived."""
        if self.pinned:
            torch.cuda.current_stream().synchronize()


def _own_group(world: World) -> World:
    """The same ranks in a group of their own, over the host's network."""
    if world.num_ranks == 1:
        return world
    return replace(world, group=dist.new_group(backend="gloo"))


def in_background(job: Job) -> tuple[bool, str]:
    """Whether checkpoints are written while training goes on, and why. Every rank must call."""
    asked = job.recipe.training.async_save
    if asked != "auto":
        return asked, "async_save: true" if asked else "async_save: false"
    if job.world.device.type == "cpu":
        return False, "writing would take the cores that train"
    needed = copy_bytes(job)
    free = min(job.world.gather(available_bytes()))
    words = f"a copy takes {format_bytes(needed)} of {format_bytes(free)} free host memory"
    return needed <= _SHARE * free, words


def copy_bytes(job: Job) -> int:
    """Host memory that the copies of all ranks take: weight and two moments of what is trained."""
    return 12 * job.num_trained

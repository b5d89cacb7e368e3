"""Checkpoints at an interval and at the end; old ones go, the best and the newest stay.

A save that fails is told and training goes on: the checkpoint before it is still there, and the next save
tries again. The disk is looked at with every logged step, so that a person hears of it before that.
"""

from launcher.hardware.free_space import free_bytes
from launcher.train.callbacks.callback import Callback, interval_due
from launcher.train.checkpoint_files import newest_whole
from launcher.train.job import Job
from launcher.train.save_failure import Failure, last_save_failed
from launcher.train.saver import Saved, Saver
from launcher.train.state import StepRecord
from launcher.units import format_bytes


class Save(Callback):
    """Saves at an interval and then at the end too; and a new best, where the best is exported."""

    phase = "save"

    def __init__(self, every: int | None, limit: int | None, *, keep_best: bool) -> None:
        """`every` in steps, None: never; `limit` checkpoints are kept; `keep_best` saves each new best."""
        self.every = every
        self.limit = limit
        self.keep_best = keep_best
        self.saver: Saver | None = None
        self.failure: Failure | None = None
        self.last_step: int | None = None
        self.has_warned = self.waits = False

    @property
    def is_wanted(self) -> bool:
        """Whether this run saves at all."""
        return self.every is not None or self.keep_best

    def start(self, job: Job) -> None:
        """Every rank decides together whether writing goes on in the background."""
        self.saver = Saver(job, limit=self.limit)
        if self.is_wanted and self.saver.in_background:
            job.say(f"checkpoints are written in the background ({self.saver.why})")

    def is_due(self, job: Job, step: int) -> bool:
        """Asked after the evaluation of the same step."""
        if self.keep_best and job.progress.best_step == step:
            return True
        if self.every is None:
            return False
        due = interval_due(self.every, step, job.total_steps, at_end=True) or self.waits
        return due or job.progress.stopped_early

    def run(self, job: Job) -> None:
        """Write a checkpoint, or begin to; then remove what is too many.

        After skipped steps it waits for a finite one: checkpoints from before the trouble would have to go
        for copies of weights that lead into it.
        """
        progress = job.progress
        ends = progress.stopped_early or progress.step in (job.total_steps, progress.best_step)
        self.waits = bool(progress.skipped_in_a_row) and not ends
        if not self.waits:
            self._save(job, at_once=False)

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Tell how a save in the background has ended; look at the disk."""
        if self.saver is not None and (ended := self.saver.poll()) is not None:
            self._tell(job, ended)
        if record.is_logged and self.every is not None and job.world.is_first:
            self._watch_disk(job)

    def save_now(self, job: Job) -> bool:
        """A checkpoint of the current step, whole on return unless it failed; False where it did."""
        self.complete(job)
        if self.last_step != job.progress.step or self.failure is not None:
            self._save(job, at_once=True)
            self.complete(job)
        return self.failure is None

    def complete(self, job: Job) -> Failure | None:
        """Wait for the save under way; why the last one failed, where it did. Every rank calls."""
        if self.saver is not None and (ended := self.saver.wait()) is not None:
            self._tell(job, ended)
        return self.failure

    def require_saved(self, job: Job) -> None:
        """Raise SaveFailed where the current step is not on the disk: the run cannot go on without."""
        if not self.save_now(job):
            assert self.failure is not None
            kept, _ = newest_whole(job.folder, sizes_only=True)
            raise last_save_failed(self.failure, kept=kept, exported=None)

    def _save(self, job: Job, *, at_once: bool) -> None:
        if self.saver is None:
            self.start(job)
        assert self.saver is not None
        self.complete(job)
        self.last_step = job.progress.step
        self.saver.save(job, at_once=at_once)
        if (ended := self.saver.poll()) is not None:
            self._tell(job, ended)

    def _tell(self, job: Job, ended: Saved) -> None:
        self.failure = ended.failure
        if ended.failure is None:
            behind = f" ({ended.write_s:.1f} s in the background)" if ended.in_background else ""
            job.say(f"saved {ended.name}{behind}")
        else:
            kept, _ = newest_whole(job.folder, sizes_only=True) if job.world.is_first else (None, [])
            held = f"{kept.name} is kept" if kept else "there is no checkpoint yet"
            job.say(f"{ended.failure.what()}; {held}")
            if ended.step < job.total_steps:
                job.say("  training goes on; the next save tries again")
            job.say(f"  type:  {ended.failure.type()}")
        if ended.note:
            job.say(ended.note)

    def _watch_disk(self, job: Job) -> None:
        """Once each time that the room left falls below what the next save takes."""
        needed, free = 12 * job.num_trained, free_bytes(job.folder)
        if free < needed and not self.has_warned:
            job.say(
                f"the next checkpoint takes {format_bytes(needed)}, {format_bytes(free)} are free in "
                f"{job.folder}: remove what you do not need on that disk, or the save will fail"
            )
        self.has_warned = free < needed

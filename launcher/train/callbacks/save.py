"""Checkpoints at an interval and at the end; old ones go, the best and the newest stay."""

from launcher.train.callbacks.callback import Callback, interval_due
from launcher.train.checkpoint import prune, save
from launcher.train.job import Job


class Save(Callback):
    """Saves at an interval; at the end too, where any interval was asked for."""

    def __init__(self, every: int | None, limit: int | None) -> None:
        """`every` in steps, None: never; `limit` checkpoints are kept."""
        self.every = every
        self.limit = limit

    def is_due(self, job: Job, step: int) -> bool:
        """At the interval and at the end."""
        return self.every is not None and interval_due(self.every, step, job.total_steps, at_end=True)

    def run(self, job: Job) -> None:
        """Write a whole checkpoint, then remove what is too many."""
        path = save(job)
        if job.world.is_first:
            prune(job.folder, limit=self.limit, keep=job.progress.best_step)
        job.say(f"saved {path.name}")

"""Checkpoints at an interval and at the end; old ones go, the best and the newest stay."""

from launcher.train.callbacks.callback import Callback, interval_due
from launcher.train.checkpoint import prune, save
from launcher.train.job import Job


class Save(Callback):
    """Saves at an interval and then at the end too; and a new best, where the best is exported."""

    phase = "save"

    def __init__(self, every: int | None, limit: int | None, *, keep_best: bool) -> None:
        """`every` in steps, None: never; `limit` checkpoints are kept; `keep_best` saves each new best."""
        self.every = every
        self.limit = limit
        self.keep_best = keep_best

    def is_due(self, job: Job, step: int) -> bool:
        """Asked after the evaluation of the same step."""
        if self.keep_best and job.progress.best_step == step:
            return True
        return self.every is not None and interval_due(self.every, step, job.total_steps, at_end=True)

    def run(self, job: Job) -> None:
        """Write a whole checkpoint, then remove what is too many."""
        path = save(job)
        if job.world.is_first:
            prune(job.folder, limit=self.limit, keep=job.progress.best_step)
        job.say(f"saved {path.name}")

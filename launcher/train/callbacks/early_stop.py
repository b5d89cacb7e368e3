"""Ends a run when evaluation has not become better for a while."""

from launcher.train.callbacks.callback import Callback
from launcher.train.callbacks.evaluate import Evaluate
from launcher.train.job import Job


class EarlyStop(Callback):
    """Stops after `patience` evaluations without a new best; stands behind `Evaluate` and before `Save`."""

    def __init__(self, evaluate: Evaluate, patience: int | None) -> None:
        """`patience` None: never."""
        self.evaluate = evaluate
        self.patience = patience

    def start(self, job: Job) -> None:
        """A checkpoint may say that the end was reached: another patience opens the run again."""
        job.progress.stopped_early = self._is_over(job)
        job.stop.early = job.progress.stopped_early

    def is_due(self, job: Job, step: int) -> bool:
        """With every evaluation."""
        return self.patience is not None and self.evaluate.is_due(job, step)

    def run(self, job: Job) -> None:
        """Count. Every rank has the same metrics, so all of them come to the same end."""
        progress = job.progress
        is_best = progress.best_step == progress.step
        progress.stale_evaluations = 0 if is_best else progress.stale_evaluations + 1
        if self._is_over(job) and progress.step < job.total_steps:
            progress.stopped_early = job.stop.early = True
            job.say(
                f"stops early at step {progress.step}: {progress.stale_evaluations} evaluations without a "
                f"better {self.evaluate.metric} than step {progress.best_step}'s"
            )

    def _is_over(self, job: Job) -> bool:
        return self.patience is not None and job.progress.stale_evaluations >= self.patience

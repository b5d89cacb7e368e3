"""What can be hung into the loop without touching it."""

from launcher.train.job import Job
from launcher.train.state import StepRecord


class Callback:
    """Base of the callbacks: each does nothing until overridden.

    `phase` names the memory that `run` takes; empty: not measured apart.
    """

    phase = ""

    def start(self, job: Job) -> None:
        """Called on every rank before the first step, a checkpoint loaded."""

    def is_due(self, job: Job, step: int) -> bool:
        """Whether `run` is wanted after that step; the loop then settles every step first."""
        return False

    def run(self, job: Job) -> None:
        """Called on every rank, all steps settled, weights as after `job.progress.step`."""

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Called for every settled step, in order, one step late."""

    def reopened(self, job: Job) -> None:
        """Told when the engine has been built anew over more parameters, before the next step."""

    def pause(self, seconds: float) -> None:
        """Told how long the callbacks that were due have taken, so that rates can leave it out."""


def interval_due(every: int | None, step: int, total: int, *, at_end: bool) -> bool:
    """Whether an interval in steps ends at `step`, or the run does."""
    return (at_end and step == total) or (every is not None and step % every == 0)

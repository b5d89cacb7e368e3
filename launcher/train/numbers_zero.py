"""A loss of exactly 0.0 and rows without anything to learn: why that happens, and when it ends a run."""

from launcher.errors import Problem, TrainError
from launcher.train.job import Job
from launcher.train.numbers import ZERO_STEPS
from launcher.train.state import StepRecord

WHY = (
    "causes: every label masked, or of one class; a rate so high that logits round the loss to 0; "
    "an answer that stands in the text"
)


def require_targets(job: Job) -> None:
    """Tell how many rows have no trained token. Raises TrainError where none has any."""
    empty, rows = int((job.store.num_targets == 0).sum()), len(job.store)
    if empty == rows:
        raise TrainError(
            Problem(
                where="data.train_file",
                what=f"none of the {rows:,} training rows has a trained token: the loss would always be 0.0",
                right="rows whose answers lie within data.max_length and are trained by data.train_on",
                type=f"launcher data RECIPE to see the rows; data.max_length={2 * job.store.max_length}",
            )
        )
    if empty:
        job.say(f"{empty:,} of {rows:,} training rows have no trained token: nothing is learnt from them")


def stuck_at_zero(job: Job, record: StepRecord, what: str, *, has_learnt: bool) -> None:
    """Say that loss or gradients have been 0 for some steps. Raises TrainError where no gradient ever was."""
    said = f"{what} has been exactly 0.0 for {ZERO_STEPS} steps"
    if has_learnt:
        job.say(f"step {record.step}: {said}: {WHY}")
        return
    raise TrainError(
        Problem(
            where=f"step {record.step}",
            what=f"{said}, and no step ever had a gradient: nothing has been learnt; {WHY}",
            right="rows with different labels or answers, and a loss above 0 at the beginning",
            type="launcher data RECIPE to see labels and trained tokens",
        )
    )

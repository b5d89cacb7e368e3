"""From seconds a step to hours a run and its price."""

import math
from dataclasses import dataclass

from launcher.plan.prices import Price
from launcher.plan.rows import Rows
from launcher.plan.time_model import StepTime
from launcher.recipe.training import TrainingOptions


@dataclass(frozen=True, kw_only=True)
class Duration:
    """Seconds of an epoch and of the run, None where the rows are unknown; evaluation and saving left out.

    `cost` is low and high for all cards together.
    """

    step_s: float
    steps_per_epoch: int | None
    total_steps: int | None
    epoch_s: float | None
    run_s: float | None
    cost: tuple[float, float] | None
    currency: str = ""


def duration(
    step: StepTime, training: TrainingOptions, rows: Rows, *, num_ranks: int, price: Price | None
) -> Duration:
    """The run's length at this speed."""
    per_epoch = rows.num_rows and math.ceil(rows.num_rows / training.global_batch_size)
    total = _total_steps(training, per_epoch)
    run_s = total * step.seconds if total else None
    cost = None
    if run_s is not None and price is not None:
        hours = run_s / 3600 * num_ranks
        cost = (hours * price.low, hours * price.high)
    return Duration(
        step_s=step.seconds,
        steps_per_epoch=per_epoch,
        total_steps=total,
        epoch_s=per_epoch * step.seconds if per_epoch else None,
        run_s=run_s,
        cost=cost,
        currency=price.currency if price else "",
    )


def _total_steps(training: TrainingOptions, per_epoch: int | None) -> int | None:
    if training.max_steps is not None:
        return training.max_steps
    return None if per_epoch is None else max(1, math.ceil(training.num_train_epochs * per_epoch))

"""What a run's numbers have been so far, and what follows from them: host numbers, no tensor, no file."""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from launcher.recipe.training import TrainingOptions
from launcher.train.state import StepRecord

# Steps that are kept for evidence: a streak and what came before it.
KEPT = 64
# Steps in a row with a loss of exactly 0.0 before it is said: a single one may be luck.
ZERO_STEPS = 8


@dataclass(frozen=True, kw_only=True)
class Past:
    """One step as evidence shows it."""

    step: int
    loss: float
    grad_norm: float
    loss_scale: float
    learning_rate: float
    skipped: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain types; numbers that JSON has not are words."""
        return {key: spoken(value) for key, value in asdict(self).items()}


def spoken(value: Any) -> Any:
    """JSON has no NaN and no infinity: `nan`, `inf` and `-inf` stand for them."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Why a run must end: `reason` in words, `kind` one of streak, scale, policy."""

    kind: str
    reason: str


class Numbers:
    """The last steps, the skips in a row, and whether fp16's scale has settled."""

    def __init__(
        self, options: TrainingOptions, *, is_scaled: bool, in_a_row: int, has_updated: bool
    ) -> None:
        """`is_scaled`: fp16. A resumed run says how many skips in a row it had, and whether it had moved."""
        self.options = options
        self.is_scaled = is_scaled
        self.in_a_row = in_a_row
        self.has_updated = has_updated
        self.zeros = self.flat = 0
        self.past: deque[Past] = deque(maxlen=KEPT)

    def add(self, record: StepRecord) -> Stop | None:
        """Take in a settled step; returns why the run must end, if it must. The same on every rank."""
        self.past.append(
            Past(
                step=record.step,
                loss=record.step_loss,
                grad_norm=record.grad_norm,
                loss_scale=record.loss_scale,
                learning_rate=record.learning_rate,
                skipped=record.skipped,
            )
        )
        if not record.skipped:
            self.in_a_row, self.has_updated = 0, True
            return None
        self.in_a_row += 1
        return next(self._stops(record), None)

    def is_settling(self, record: StepRecord) -> bool:
        """Whether a skip is fp16's scale finding its place: normal, nothing is wrong with the numbers."""
        return self.is_scaled and not self.has_updated and math.isfinite(record.step_loss)

    def _stops(self, record: StepRecord) -> Iterator[Stop]:
        options = self.options
        if options.non_finite == "stop" and not (self.is_scaled and math.isfinite(record.step_loss)):
            yield Stop(kind="policy", reason="its numbers are not finite (training.non_finite is stop)")
        if self.is_scaled and record.loss_scale < options.min_loss_scale:
            yield Stop(
                kind="scale",
                reason=f"the loss scale fell to {record.loss_scale:g}, below training.min_loss_scale "
                f"{options.min_loss_scale:g}",
            )
        if self.in_a_row > options.max_skipped_steps:
            yield Stop(
                kind="streak",
                reason=f"{self.in_a_row} steps in a row whose numbers are not finite "
                f"(training.max_skipped_steps is {options.max_skipped_steps})",
            )

    def stuck_at_zero(self, record: StepRecord) -> str | None:
        """Which of loss and gradients has now been exactly 0 for several steps; once a stretch of them.

        Steps without targets, whose loss is 0 by nature, say nothing.
        """
        if not record.num_targets:
            return None
        self.zeros = self.zeros + 1 if record.step_loss == 0.0 else 0
        self.flat = self.flat + 1 if record.grad_norm == 0.0 else 0
        if self.zeros == ZERO_STEPS:
            return "the loss"
        return "every gradient" if self.flat == ZERO_STEPS else None

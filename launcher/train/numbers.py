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
    """One step as evidence shows it: `loss` is the logged mean or this rank's share, as `is_logged` says."""

    step: int
    loss: float
    grad_norm: float
    loss_scale: float
    learning_rate: float
    skipped: bool
    is_logged: bool

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
        self.zeros = self.last_logged = 0
        self.past: deque[Past] = deque(maxlen=KEPT)

    def add(self, record: StepRecord, *, loss_is_finite: bool = True) -> Stop | None:
        """Take in a settled step; returns why the run must end, if it must.

        `loss_is_finite`: whether every rank's share is; asked of skipped steps only, and the same on every
        rank, as everything here is.
        """
        self.past.append(
            Past(
                step=record.step,
                loss=record.loss,
                grad_norm=record.grad_norm,
                loss_scale=record.loss_scale,
                learning_rate=record.learning_rate,
                skipped=record.skipped,
                is_logged=record.is_logged,
            )
        )
        if not record.skipped:
            self.in_a_row, self.has_updated = 0, True
            return None
        self.in_a_row += 1
        return next(self._stops(record, loss_is_finite), None)

    def is_settling(self, *, loss_is_finite: bool) -> bool:
        """Whether a skip is fp16's scale finding its place: normal, nothing is wrong with the numbers."""
        return self.is_scaled and not self.has_updated and loss_is_finite

    def _stops(self, record: StepRecord, loss_is_finite: bool) -> Iterator[Stop]:
        options = self.options
        if options.non_finite == "stop" and not (self.is_scaled and loss_is_finite):
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

    def is_stuck_at_zero(self, record: StepRecord, *, num_ranks: int) -> bool:
        """Whether the loss has now been exactly 0.0 for several steps; true once a stretch of them.

        A rank's own share is the whole loss only where it is alone. Elsewhere a logged mean tells: losses are
        not negative, so a mean of 0.0 is made of zeros. Windows without targets say nothing.
        """
        if not record.num_targets or not (record.is_logged or num_ranks == 1):
            return False
        steps = 1 if num_ranks == 1 else record.step - self.last_logged
        self.last_logged = record.step
        before = self.zeros
        self.zeros = before + steps if (record.share if num_ranks == 1 else record.loss) == 0.0 else 0
        return before < ZERO_STEPS <= self.zeros

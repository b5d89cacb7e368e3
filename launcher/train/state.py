"""Where a run stands, and what a step left behind on the device, read without holding it up."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch import Tensor


@dataclass
class Progress:
    """The loop's counters. `step` counts windows of data, `updates` those that moved the weights.

    `phase_updates`: by the step at which parameters opened, how many updates there had been. `unlogged`: each
    rank's sum of the losses since the last logged step. `moments_start`: after how many updates the optimizer
    began anew. `stale_evaluations`: evaluations since the best one.
    """

    step: int = 0
    updates: int = 0
    epoch: float = 0.0
    rows: int = 0
    tokens: int = 0
    train_seconds: float = 0.0
    best_metric: float | None = None
    best_step: int | None = None
    skipped_in_a_row: int = 0
    loss_scale: dict[str, float] = field(default_factory=dict)
    phase_updates: dict[str, int] = field(default_factory=dict)
    unlogged: list[dict[str, float]] = field(default_factory=list)
    moments_start: int = 0
    stale_evaluations: int = 0
    stopped_early: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as kept in a checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> "Progress":
        """From a checkpoint, also from one of a version that kept more or less."""
        known = {each.name for each in fields(cls)}
        return cls(**{key: value for key, value in state.items() if key in known})

    @property
    def moment_updates(self) -> int:
        """The updates that the optimizer's moments have seen."""
        return self.updates - self.moments_start

    @property
    def skipped(self) -> int:
        """Steps whose gradients were not finite."""
        return self.step - self.updates


class UnloggedLoss:
    """This rank's losses since the last logged step, summed on the device."""

    def __init__(self, device: torch.device) -> None:
        """Nothing yet."""
        self.total = torch.zeros((), device=device)
        self.count = 0

    def add(self, share: Tensor) -> None:
        """Take in a step's share of the loss."""
        self.total += share
        self.count += 1

    def take(self) -> Tensor:
        """The mean, and nothing is left."""
        mean = self.total / self.count
        self.total, self.count = torch.zeros_like(self.total), 0
        return mean

    def state(self) -> dict[str, float]:
        """For a checkpoint; reads the device."""
        return {"sum": float(self.total), "count": float(self.count)}

    def load_state(self, of_ranks: Sequence[Mapping[str, float]], rank: int, num_ranks: int) -> None:
        """From a checkpoint. On another number of ranks the first one takes the sum of all."""
        if not of_ranks:
            return
        own = of_ranks[rank] if len(of_ranks) == num_ranks else None
        total = own["sum"] if own else sum(each["sum"] for each in of_ranks) * (rank == 0)
        self.total.fill_(total)
        self.count = int(of_ranks[0]["count"])


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """A settled step: host numbers. `loss` is the mean since the previous logged step, where logged.

    `step_loss` is the step's own, `share` this rank's part of it, `loss_scale` the scale after the step,
    `num_targets` what the global batch's loss is divided by, `handed_s` when its work had been handed over
    (seconds of `time.perf_counter`): steps are settled later, some sooner than others.
    """

    step: int
    loss: float
    step_loss: float
    share: float
    loss_scale: float
    num_targets: int
    grad_norm: float
    skipped: bool
    learning_rate: float
    epoch: float
    is_logged: bool
    handed_s: float
    stop_asked: bool = False


class PendingStep:
    """A step's numbers on their way from the device to the host.

    The copy is started at once and waited for one step later, when it has long arrived: the steady
    state never makes the device wait for the host.
    """

    def __init__(self, numbers: Tensor, **facts: Any) -> None:
        """`numbers`: [loss, the step's own, gradient norm, skipped, share, loss scale, ranks asked to stop].

        `facts`: the record's other fields.
        """
        self.facts = facts
        self.arrived: torch.cuda.Event | None = None
        if numbers.is_cuda:
            self.host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self.host.copy_(numbers, non_blocking=True)
            self.arrived = torch.cuda.Event()
            self.arrived.record()
        else:
            self.host = numbers

    def settle(self) -> StepRecord:
        """Wait for the copy, not for later work, and give the record."""
        if self.arrived is not None:
            self.arrived.synchronize()
        loss, own, norm, skipped, share, scale, asked = self.host.tolist()
        return StepRecord(
            loss=loss,
            step_loss=own,
            grad_norm=norm,
            skipped=skipped > 0,
            share=share,
            loss_scale=scale,
            stop_asked=asked > 0,
            **self.facts,
        )

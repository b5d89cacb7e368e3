"""Where a run stands, and what a step left behind on the device, read without holding it up."""

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass
class Progress:
    """The loop's counters. `step` counts windows of data, `updates` those that moved the weights."""

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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, as kept in a checkpoint."""
        return asdict(self)

    @property
    def skipped(self) -> int:
        """Steps whose gradients were not finite."""
        return self.step - self.updates


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """A settled step: host numbers. `loss` is the mean since the previous logged step, where logged.

    `share` is this rank's part of the step's own loss, `loss_scale` the scale after the step, `num_targets`
    what the global batch's loss is divided by.
    """

    step: int
    loss: float
    share: float
    loss_scale: float
    num_targets: int
    grad_norm: float
    skipped: bool
    learning_rate: float
    epoch: float
    is_logged: bool


class PendingStep:
    """A step's numbers on their way from the device to the host.

    The copy is started at once and waited for one step later, when it has long arrived: the steady
    state never makes the device wait for the host.
    """

    def __init__(self, numbers: Tensor, **facts: Any) -> None:
        """`numbers`: [loss, gradient norm, skipped, share, loss scale]; `facts`: the record's other ones."""
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
        loss, norm, skipped, share, scale = self.host.tolist()
        return StepRecord(
            loss=loss, grad_norm=norm, skipped=skipped > 0, share=share, loss_scale=scale, **self.facts
        )

"""What the loop asks of a backend: backward, step, and the training state by parameter name.

The loss handed to `backward` is already this rank's share of the global batch's mean: summed over
ranks, the shares give it. Each backend makes its own reduction (a sum, an average) come out so.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from launcher.backends.options import BackendOptions
from launcher.errors import LaunchMismatch, Problem
from launcher.facts import StepSettings
from launcher.precision_torch import LossScale

MOMENTS = ("exp_avg", "exp_avg_sq")
ParameterState = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a backend connects: a module, its parameter groups, and how to make their optimizer."""

    module: nn.Module
    groups: list[dict[str, Any]]
    make_optimizer: Callable[[list[dict[str, Any]]], Optimizer]
    device: torch.device
    rank: int
    settings: StepSettings
    max_grad_norm: float
    loss_scale: LossScale
    name: str = ""
    options: BackendOptions | None = None
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StepOutcome:
    """After a step, on the device: the gradient norm before clipping, and 1.0 where it was skipped."""

    grad_norm: Tensor
    skipped: Tensor


def poisoned_if_not_finite(loss: Tensor) -> Tensor:
    """The loss, or NaN in its place, so that an infinite loss with finite gradients spoils them too.

    The gradients' own reduction is then the vote over ranks: no rank can take a step that another
    rank has reason to skip, and nothing is read on the host.
    """
    return loss * torch.where(torch.isfinite(loss.detach()), 1.0, torch.nan)


class CannotCatchUp(Exception):
    """What the other ranks wait for is not known yet: this rank has to end, and they with it."""


class Strategy(ABC):
    """A connected backend. `module` is what the loop calls; `optimizer` holds the learning rates."""

    module: nn.Module
    optimizer: Optimizer

    def __init__(self, parts: Parts) -> None:
        """Keep the parts; subclasses wrap the module."""
        self.parts = parts
        self.loss_scale = parts.loss_scale

    #: Whether a window that ran out of memory may be run again here: no other rank waits for this one.
    recovers = False

    def vote(self, value: int) -> int:
        """The highest value over the ranks, where they can `recover`; no device waits for it."""
        return value

    def catch_up(self) -> None:
        """On the rank that failed, before the vote: whatever the other ranks wait for in this window.

        Raises CannotCatchUp.
        """
        return

    def abandon(self) -> None:
        """Forget what the window has accumulated. Every rank calls, after a vote."""
        return

    def finish(self) -> None:
        """After a vote that nobody failed: what is left to do before the step."""
        return

    def accumulating(self, *, is_last: bool) -> AbstractContextManager[object]:
        """Around one micro batch's forward and backward; `is_last` marks the window's last one."""
        return nullcontext()

    @abstractmethod
    def backward(self, loss: Tensor) -> None:
        """Accumulate gradients; the loss is this rank's share of the global batch's mean."""

    @abstractmethod
    def step(self) -> StepOutcome:
        """Clip, update unless the gradients are not finite, clear the gradients."""

    @abstractmethod
    def check(self) -> str:
        """Assert that this backend is really in use; returns one line that says what is."""

    @abstractmethod
    def state(self) -> Iterator[tuple[str, ParameterState]]:
        """Each trainable parameter's full fp32 `weight` and moments. Every rank must iterate.

        The tensors may live on the device; moments are absent before the first update.
        """

    @abstractmethod
    def load_state(self, read: Callable[[str], ParameterState], *, num_updates: int) -> None:
        """The reverse: `read(name)` gives the full tensors. Every rank must call.

        A parameter for which it gives nothing has been opened just now: it keeps its weight and starts
        without moments. A group's `opened_at` says after how many updates of the run it was opened.
        """

    def whole_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter, frozen ones too, whole, by its name in the unwrapped module."""
        yield from ((name, parameter.detach()) for name, parameter in self.parts.module.named_parameters())

    def local_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """What this rank holds of every parameter; pieces where the backend divides them."""
        yield from ((name, parameter.detach()) for name, parameter in self.parts.module.named_parameters())

    def close(self) -> None:
        """Remove what lies outside the process. Nothing may be asked of the strategy afterwards."""
        return

    def restore_loss_scale(self, state: dict[str, float]) -> None:
        """Set fp16's loss scale, wherever the backend keeps a copy of it."""
        self.loss_scale.load_state(state)

    def release(self) -> None:
        """Let go of what would keep module and states alive, before another engine takes their place."""
        return

    def set_learning_rate(self, factor: float) -> None:
        """Set each group's rate to `factor` times its highest rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor

    def named_trainable(self) -> list[tuple[str, nn.Parameter]]:
        """Trainable parameters under their names in the unwrapped module."""
        named = self.parts.module.named_parameters()
        return [(name, parameter) for name, parameter in named if parameter.requires_grad]


def updates_of(group: dict[str, Any], num_updates: int) -> int:
    """The updates that a group has had itself: Adam corrects its moments' bias by this number.

    Counted with the run's updates instead, a tensor's first step after its opening would be 1 - beta1 over
    the root of 1 - beta2 of what it should be: three times too long with the usual values.
    """
    return max(0, num_updates - int(group.get("opened_at", 0)))


def remember_rates(optimizer: Optimizer) -> Optimizer:
    """Note each group's highest rate, which the schedule multiplies."""
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    return optimizer


def mismatch(what: str, right: str) -> LaunchMismatch:
    """The error for a backend that is not what was asked for."""
    return LaunchMismatch(
        Problem(where="backend.name", what=what, right=right, type="launcher run RECIPE --backend NAME")
    )

"""Parts of a strategy over a small module, for tests in one process."""

from typing import Any

import torch
from torch import nn

from launcher.backends.single_gpu_torch import connect
from launcher.backends.strategy_torch import Parts, Strategy
from launcher.facts import StepSettings
from launcher.optim.build_torch import build_optimizer, parameter_groups
from launcher.precision_torch import LossScale, StepPrecision


def connected(module: nn.Module, *, precision: str = "fp32", fused: bool = True, **changes: Any) -> Strategy:
    """The single-process strategy over `module`."""
    settings = StepSettings(global_batch_size=4, micro_batch_size=4, accumulation_steps=1, num_ranks=1)

    def make_optimizer(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        return build_optimizer(groups, learning_rate=1e-2, betas=(0.9, 0.999), epsilon=1e-8, fused=fused)

    values: dict[str, Any] = {
        "module": module,
        "groups": parameter_groups(module, 0.01),
        "make_optimizer": make_optimizer,
        "device": torch.device("cpu"),
        "rank": 0,
        "settings": settings,
        "max_grad_norm": 1.0,
        "loss_scale": LossScale(StepPrecision(name=precision, device_type="cpu")),
    }
    return connect(Parts(**(values | changes)))

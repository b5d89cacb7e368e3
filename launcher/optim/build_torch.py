"""Builds the optimizer: decay on matrices only, the fused kernel where it is asked for."""

import torch
from torch import nn

Group = dict[str, object]


def parameter_groups(module: nn.Module, weight_decay: float) -> list[Group]:
    """Trainable parameters in two groups: matrices decay, biases and norms (one dimension) do not.

    Empty groups are dropped: some engines refuse them.
    """
    trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def build_optimizer(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float, fused: bool
) -> torch.optim.AdamW:
    """AdamW with decoupled decay (Loshchilov & Hutter 2019, arXiv:1711.05101)."""
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=epsilon, fused=fused)

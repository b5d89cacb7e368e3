"""Builds the optimizer: decay on matrices only, the fused kernel where it is asked for."""

import torch
from torch import nn

Group = dict[str, object]


def parameter_groups(module: nn.Module, weight_decay: float) -> list[Group]:
    """Trainable parameters in two groups: matrices decay, biases and norms (one dimension) do not.

    Empty groups are dropped: some engines refuse them. `names` stay right where a backend replaces the
    parameters' objects.
    """
    trainable = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    parts = [
        (weight_decay, [(name, p) for name, p in trainable if p.ndim >= 2]),
        (0.0, [(name, p) for name, p in trainable if p.ndim < 2]),
    ]
    return [
        {"params": [p for _, p in part], "names": [name for name, _ in part], "weight_decay": decay}
        for decay, part in parts
        if part
    ]


def build_optimizer(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float, fused: bool
) -> torch.optim.AdamW:
    """AdamW with decoupled decay (Loshchilov & Hutter 2019, arXiv:1711.05101)."""
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=epsilon, fused=fused)

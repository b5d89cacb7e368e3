"""Builds the optimizer: decay on matrices only, the fused kernel where it is asked for."""

from collections.abc import Callable, Mapping

import torch
from torch import nn

from launcher.optim.table import OPTIMIZERS
from launcher.registry import load_attribute

Group = dict[str, object]


def parameter_groups(
    module: nn.Module,
    weight_decay: float,
    rates: Mapping[str, float] | None = None,
    opened_at: Mapping[str, int] | None = None,
) -> list[Group]:
    """Trainable parameters by decay and rate: matrices decay, biases and norms (one dimension) do not.

    `rates` gives learning rates by name; without it every group takes the optimizer's. `opened_at`: after how
    many updates a parameter began to train; those that began together share a count, engines that keep one
    count a group included. No group is empty, which some engines refuse, and none equals another: each costs
    the engine a pass of its own. `names` stay right where a backend replaces the parameters' objects.
    """
    found: dict[tuple[float, float | None, int], Group] = {}
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        decay, rate = 0.0 if parameter.ndim < 2 else weight_decay, rates[name] if rates else None
        since = opened_at.get(name, 0) if opened_at else 0
        fresh: Group = {"params": [], "names": [], "weight_decay": decay}
        fresh |= {} if rate is None else {"lr": rate}
        fresh |= {"opened_at": since} if since else {}
        group = found.setdefault((decay, rate, since), fresh)
        group["params"].append(parameter)  # type: ignore[attr-defined]
        group["names"].append(name)  # type: ignore[attr-defined]
    return [found[key] for key in sorted(found, key=lambda key: (key[2], -key[0], key[1] or 0.0))]


def rates_of(
    module: nn.Module, rate: float, factors: list[Callable[[str], float]]
) -> dict[str, float] | None:
    """Each trainable parameter's own learning rate; None where there is only one."""
    if not factors:
        return None
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    found = dict.fromkeys(names, rate)
    for factor in factors:
        found = {name: held * factor(name) for name, held in found.items()}
    return found


def build_optimizer(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float, fused: bool
) -> torch.optim.AdamW:
    """AdamW with decoupled decay (Loshchilov & Hutter 2019, arXiv:1711.05101)."""
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=epsilon, fused=fused)


def make(
    name: str, groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """The optimizer that a recipe names."""
    builder = load_attribute(OPTIMIZERS[name].build)
    made: torch.optim.Optimizer = builder(groups, learning_rate=learning_rate, betas=betas, epsilon=epsilon)
    return made


def adamw_fused(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """AdamW in one kernel a list of tensors."""
    return build_optimizer(groups, learning_rate=learning_rate, betas=betas, epsilon=epsilon, fused=True)


def adamw(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """AdamW by torch's own choice of loops."""
    return build_optimizer(groups, learning_rate=learning_rate, betas=betas, epsilon=epsilon, fused=False)


def sgd(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """Gradient descent without momentum; betas and epsilon have no meaning here."""
    return torch.optim.SGD(groups, lr=learning_rate)


def adafactor(
    groups: list[Group], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """Shazeer and Stern 2018 (arXiv:1804.04235): each step is relative to the size of its tensor.

    Its decay of the second moment and its epsilons are the paper's; the recipe's belong to AdamW.
    """
    return torch.optim.Adafactor(groups, lr=learning_rate)

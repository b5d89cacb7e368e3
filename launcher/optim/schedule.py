"""The learning rate as a pure function of the update's number: warm-up, then a shape.

The shapes equal those of `transformers.get_scheduler` under the same names, so that a recipe means
what its author has measured elsewhere.
"""

import math
from collections.abc import Callable

Shape = Callable[[int, int, int], float]


def warmup_updates(warmup: float, total_updates: int) -> int:
    """Below 1 a share of all updates (rounded up, as transformers does); from 1 a number of updates."""
    return math.ceil(warmup * total_updates) if warmup < 1 else int(warmup)


def _remaining(update: int, warmup: int, total: int) -> float:
    return max(0.0, (total - update) / max(1, total - warmup))


def _cosine(update: int, warmup: int, total: int) -> float:
    progress = (update - warmup) / max(1, total - warmup)
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))


def _inverse_sqrt(update: int, warmup: int, total: int) -> float:
    timescale = warmup or 10_000
    return 1.0 / math.sqrt((update + timescale - warmup) / timescale)


def _polynomial(update: int, warmup: int, total: int) -> float:
    # transformers' defaults: power 1, ending at 1e-7 of an absolute rate; the end is 0 here.
    return _remaining(update, warmup, total)


_SHAPES: dict[str, Shape] = {
    "linear": _remaining,
    "cosine": _cosine,
    "constant": lambda update, warmup, total: 1.0,
    "constant_with_warmup": lambda update, warmup, total: 1.0,
    "polynomial": _polynomial,
    "inverse_sqrt": _inverse_sqrt,
}


def rate_factor(name: str, update: int, *, warmup: int, total: int) -> float:
    """What the highest rate is multiplied by at the given update (0 is the first one).

    `constant` ignores the warm-up, as transformers does. With a warm-up the first factor is 0.
    """
    if update < warmup and name != "constant":
        return update / max(1, warmup)
    return _SHAPES[name](update, warmup, total)


def scaled_rate(rate: float, *, global_batch: int, reference: int | None, scaling: str) -> float:
    """The rate carried from the batch it was chosen for to the recipe's: x k (linear) or x sqrt(k).

    Source: Goyal et al. 2017 (arXiv:1706.02677) for linear, Krizhevsky 2014 (arXiv:1404.5997) for sqrt.
    """
    if reference is None or scaling == "none":
        return rate
    factor = global_batch / reference
    return rate * (factor if scaling == "linear" else math.sqrt(factor))

"""AdamW with 8-bit moments (Dettmers et al. 2022, arXiv:2110.02861), by bitsandbytes 0.50.

Moments of embeddings stay fp32, as the paper and transformers' Trainer have it: their gradients are
sparse and uneven. Tensors below 4,096 elements keep fp32 moments too.
"""

import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch

from launcher.errors import BadValue, Problem

_EMBEDDING_WORDS = ("embed", ".wte.", ".wpe.")


def adamw_8bit(
    groups: list[dict[str, Any]], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """Raises BadValue where bitsandbytes is not installed."""
    return _make("AdamW8bit", groups, learning_rate, betas, epsilon)


def paged_adamw_8bit(
    groups: list[dict[str, Any]], *, learning_rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    """On a CPU nothing is paged: there it is `adamw_8bit`."""
    return _make("PagedAdamW8bit", groups, learning_rate, betas, epsilon)


def _make(
    kind: str, groups: list[dict[str, Any]], rate: float, betas: tuple[float, float], epsilon: float
) -> torch.optim.Optimizer:
    bnb = _bitsandbytes()
    warnings.filterwarnings("ignore", message="Paged optimizers are not supported on CPU")
    made: Any = getattr(bnb.optim, kind)(groups, lr=rate, betas=betas, eps=epsilon)
    made.get_config = partial(_config, made.get_config)
    return cast(torch.optim.Optimizer, made)


def _config(plain: Callable[..., dict[str, Any]], number: int, place: int, group: Any) -> dict[str, Any]:
    """A parameter's settings. bitsandbytes has a manager for exceptions, but one for all of a process.

    It knows parameters by `id`, which another parameter has after them, and by their place in whatever
    optimizer: the next one of the process would get this one's exceptions.
    """
    is_embedding = any(word in f".{group['names'][place]}." for word in _EMBEDDING_WORDS)
    return plain(number, place, group) | ({"optim_bits": 32} if is_embedding else {})


def _bitsandbytes() -> Any:
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        import bitsandbytes
    except ImportError as error:
        raise BadValue(
            Problem(
                where="training.optim",
                what=f"8-bit optimizers need bitsandbytes, which does not load here: {error}",
                right="bitsandbytes installed, or another optimizer",
                type="training.optim=adamw_torch_fused",
            )
        ) from error
    return bitsandbytes

"""AdamW with 8-bit moments (Dettmers et al. 2022, arXiv:2110.02861), by bitsandbytes 0.50.

Moments of embeddings stay fp32, as the paper and transformers' Trainer have it: their gradients are
sparse and uneven. Tensors below 4,096 elements keep fp32 moments too.
"""

import logging
import warnings
from typing import Any

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
    manager = bnb.optim.GlobalOptimManager.get_instance()
    made: torch.optim.Optimizer = getattr(bnb.optim, kind)(groups, lr=rate, betas=betas, eps=epsilon)
    manager.register_parameters(groups)
    for group in groups:
        for name, parameter in zip(group["names"], group["params"], strict=True):
            if any(word in f".{name}." for word in _EMBEDDING_WORDS):
                manager.override_config(parameter, "optim_bits", 32)
    return made


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

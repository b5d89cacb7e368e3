"""How much of the learning rate each parameter gets: less below, more for LoRA's second matrix. No torch."""

import re
from collections.abc import Callable, Iterable

_BLOCK = re.compile(r"(?:^|\.)(\d+)\.")
_EMBEDDING = re.compile(r"embed|(^|\.)(wte|wpe)(\.|$)")


def depth_of(name: str, num_blocks: int) -> int:
    """0 for the embeddings, k + 1 for block k, `num_blocks` + 1 for what follows the blocks."""
    if found := _BLOCK.search(name):
        return int(found.group(1)) + 1
    return 0 if _EMBEDDING.search(name) else num_blocks + 1


def blocks_in(names: Iterable[str]) -> int:
    """Blocks that the names of a model's parameters count."""
    return max((int(found.group(1)) + 1 for name in names if (found := _BLOCK.search(name))), default=0)


def layerwise(names: Iterable[str], decay: float) -> Callable[[str], float]:
    """Layer-wise decay (Howard and Ruder 2018, arXiv:1801.06146): decay ** (steps below the head).

    With L blocks the head gets the whole rate, block k decay^(L - k), the embeddings decay^(L + 1).
    """
    num_blocks = blocks_in(names)
    return lambda name: decay ** (num_blocks + 1 - depth_of(name, num_blocks))


def second_matrix(ratio: float) -> Callable[[str], float]:
    """LoRA+ (Hayou 2024, arXiv:2402.12354): each pair's second matrix learns `ratio` times faster."""
    return lambda name: ratio if ".lora_B." in f".{name}." else 1.0

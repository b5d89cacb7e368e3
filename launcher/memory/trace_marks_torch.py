"""Tells the log when a block's forward and backward passes begin, whatever the architecture."""

from typing import Any

from torch import Tensor, nn

from launcher.memory.trace_log import TraceLog
from launcher.models.blocks_torch import block_modules


def place_of(index: int, depth: int) -> str:
    """A block's name that means the same at every depth: the ends one by one, the rest together."""
    if depth < 4:
        return f"block{index}"
    return {0: "first", 1: "second", depth - 2: "second last", depth - 1: "last"}.get(index, "middle")


def mark_blocks(module: nn.Module, log: TraceLog) -> None:
    """Hook every block. The marks are `phase/place`; recomputation belongs to the backward pass."""
    blocks = block_modules(module)
    for index, block in enumerate(blocks):
        place = place_of(index, len(blocks))
        block.register_forward_pre_hook(_begin(log, place))
        block.register_forward_hook(_end(log, place, is_last=index == len(blocks) - 1))


def _phase(log: TraceLog) -> str:
    mark = next(str(value) for kind, _, value in reversed(log.events) if kind == "mark")
    return mark.partition("/")[0]


def _begin(log: TraceLog, place: str) -> Any:
    def begin(block: nn.Module, inputs: Any) -> None:
        phase = _phase(log)
        if phase != "backward":
            log.mark(f"{phase}/{place}")

    return begin


def _end(log: TraceLog, place: str, *, is_last: bool) -> Any:
    def end(block: nn.Module, inputs: Any, output: Any) -> None:
        phase = _phase(log)
        first = output[0] if isinstance(output, tuple) else output
        if phase == "backward":
            return
        if isinstance(first, Tensor) and first.requires_grad:
            first.register_hook(lambda grad: log.mark(f"backward/{place}"))
        if is_last:
            log.mark(f"{phase}/after")

    return end

"""What gloo's collectives allocate and free inside one call on a CPU (torch 2.13, ProcessGroupGloo.cpp).

NCCL works in place: on a card there is nothing of this. A real run of several ranks on a CPU has it, and a
comparison with such a run has to count it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor


def gloo_bytes(func: Any, args: Sequence[Any]) -> int:
    """Bytes of one collective's own copies; 0 for what is no collective, and for those in place."""
    copied = _COPIED.get(str(func))
    return 0 if copied is None else copied(args)


def _size(found: Any) -> int:
    if isinstance(found, Tensor):
        return found.nbytes
    return sum(map(_size, found))


# An all-gather is received into a flat copy of its outputs; a reduce-scatter is an all-reduce of a copy of
# its input. The functional ones (DTensor's) make their output themselves, which is seen as any result is.
_COPIED: dict[str, Callable[[Sequence[Any]], int]] = {
    "c10d._allgather_base_.default": lambda args: _size(args[0]),
    "c10d.allgather_.default": lambda args: _size(args[0]),
    "c10d.allgather_into_tensor_coalesced_.default": lambda args: _size(args[0]),
    "c10d._reduce_scatter_base_.default": lambda args: _size(args[1]),
    "c10d.reduce_scatter_tensor_coalesced_.default": lambda args: _size(args[1]),
    "c10d.reduce_scatter_.default": lambda args: _size(args[1]),
    "_c10d_functional.all_gather_into_tensor.default": lambda args: args[1] * _size(args[0]),
    "_c10d_functional.reduce_scatter_tensor.default": lambda args: _size(args[0]),
}

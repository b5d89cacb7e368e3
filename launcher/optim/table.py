"""The optimizers that a recipe can name: what they keep, and where they give the same numbers. No torch.

An element-wise one works on any piece of a tensor. The others look at a whole tensor (Adafactor's rows and
columns) or at blocks of it (8-bit states): on a divided or flattened one they would compute something else,
in silence, so that they are refused there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

WHOLE_TENSORS = ("single_gpu", "multi_gpu", "model_parallel")


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """One optimizer. `in_memory` is its name in the memory estimate, `state` what its checkpoints hold.

    `build`: `module:function` of (groups, learning_rate, betas, epsilon); `backends`: where it may be used,
    None for all, `refusal` why not elsewhere; `package` what must be installed for it.
    """

    name: str
    summary: str
    in_memory: str
    state: str
    build: str
    backends: tuple[str, ...] | None = None
    refusal: str = ""
    package: str = ""


_HERE = "launcher.optim.build_torch"
_ROWS = "it needs whole matrices for their rows and columns, and this backend divides or flattens them"
_BLOCKS = "its 8-bit blocks would be cut differently on divided tensors, and so would its numbers"
_NOTHING = "SGD keeps no states, which is what ZeRO divides"
_BELOW = "launcher.optim.eight_bit_torch"

_ALL = (
    Optimizer(
        name="adamw_torch_fused",
        summary="AdamW, one kernel",
        in_memory="adamw_fused",
        state="adamw_torch_fused",
        build=f"{_HERE}:adamw_fused",
    ),
    Optimizer(
        name="adamw_torch",
        summary="AdamW, tensor lists",
        in_memory="adamw_foreach",
        state="adamw_torch_fused",
        build=f"{_HERE}:adamw",
    ),
    Optimizer(
        name="sgd",
        summary="plain gradient descent, no states",
        in_memory="sgd",
        state="sgd",
        build=f"{_HERE}:sgd",
        backends=(*WHOLE_TENSORS, "fsdp2", "fsdp2_offload"),
        refusal=_NOTHING,
    ),
    Optimizer(
        name="adafactor",
        summary="row and column means instead of second moments, no first ones",
        in_memory="adafactor",
        state="adafactor",
        build=f"{_HERE}:adafactor",
        backends=WHOLE_TENSORS,
        refusal=_ROWS,
    ),
    Optimizer(
        name="adamw_8bit",
        summary="AdamW with moments of one byte",
        in_memory="adamw_8bit",
        state="adamw_8bit",
        build=f"{_BELOW}:adamw_8bit",
        backends=WHOLE_TENSORS,
        refusal=_BLOCKS,
        package="bitsandbytes",
    ),
    Optimizer(
        name="paged_adamw_8bit",
        summary="the same, its moments in host memory under pressure",
        in_memory="paged_adamw_8bit",
        state="adamw_8bit",
        build=f"{_BELOW}:paged_adamw_8bit",
        backends=WHOLE_TENSORS,
        refusal=_BLOCKS,
        package="bitsandbytes",
    ),
)
OPTIMIZERS: Mapping[str, Optimizer] = {each.name: each for each in _ALL}


# What checkpoints hold that were written before they said whose states they hold.
WITHOUT_STATED_OPTIMIZER = {"training.optim": "adamw_torch_fused"}


def keeps_state(name: str) -> bool:
    """Whether the optimizer remembers anything between two steps."""
    return OPTIMIZERS[name].state != "sgd"


def works_on(name: str, backend: str) -> bool:
    """Whether the optimizer gives there what it gives on one process."""
    backends = OPTIMIZERS[name].backends
    return backends is None or backend in backends

"""Lets DeepSpeed's engine run in a world whose other ranks are not there (tried with deepspeed 0.19.8).

Its code runs as it is, on tensors without values. Only what looks at other ranks or at this machine is
answered for it, and what it keeps for a whole process is put back.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.nn import functional

from launcher.backends.zero_torch import import_deepspeed
from launcher.memory.live_bytes_torch import CARD
from launcher.memory.trace_replaced import replaced

# More than any model: the weights are flattened on the card, as where the card has room for both copies.
_ROOMY_BYTES = 2**62


@contextmanager
def engine_alone(num_ranks: int) -> Iterator[None]:
    """DeepSpeed takes the process group that is there for `num_ranks` ranks, of which this is the first."""
    import_deepspeed("cpu")
    from deepspeed.accelerator import get_accelerator
    from deepspeed.comm import comm
    from deepspeed.runtime.zero import partitioned_param_coordinator as coordinator
    from deepspeed.utils import groups

    with ExitStack() as patches:
        patches.enter_context(warnings.catch_warnings())
        # It asserts where a partition begins; a tensor without memory has no address to be wrong.
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        patches.enter_context(_rank_zero_of(num_ranks))
        patches.enter_context(replaced(comm, cdb=None))
        # Stage 3 puts its own in this place for good (deepspeed/runtime/zero/linear.py).
        patches.enter_context(replaced(functional, linear=functional.linear))
        patches.enter_context(_kept(groups))
        # It compares its order of modules with rank 0's, by value.
        patches.enter_context(replaced(coordinator, assert_ints_same_as_other_ranks=lambda numbers: None))
        patches.enter_context(
            replaced(
                get_accelerator(),
                available_memory=lambda *device: _ROOMY_BYTES,
                current_device_name=lambda: str(CARD),
                device_name=lambda *index: str(CARD),
                on_accelerator=lambda tensor: tensor.device == CARD,
            )
        )
        yield


@contextmanager
def _rank_zero_of(num_ranks: int) -> Iterator[None]:
    """The variables that a starter sets."""
    before = dict(os.environ)
    world = str(num_ranks)
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=world, LOCAL_WORLD_SIZE=world)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _kept(module: Any) -> Iterator[None]:
    """A module's global variables are afterwards what they were: groups of a world do not outlive it."""
    named = {name: value for name, value in vars(module).items() if name.strip("_").isupper()}
    copies = {name: dict(value) if isinstance(value, dict) else value for name, value in named.items()}
    try:
        yield
    finally:
        vars(module).update(copies)

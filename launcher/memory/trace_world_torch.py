"""A world of N ranks in one process: collectives that move nothing, for tensors that hold nothing."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp._fully_shard import _fully_shard
from torch.nn.parallel import DistributedDataParallel, distributed
from torch.utils._python_dispatch import _disable_current_modes
from transformers import masking_utils

from launcher.backends import fsdp_torch, multi_gpu_torch
from launcher.backends.options import BACKENDS
from launcher.memory.live_bytes_torch import CARD
from launcher.memory.trace_replaced import replaced
from launcher.memory.trace_request import TraceRequest


@contextmanager
def fake_world(request: TraceRequest) -> Iterator[None]:
    """Rank 0 of `num_ranks`, where the backend needs a group (torch 2.13's own test group "fake")."""
    backend = BACKENDS.get(request.backend)
    with ExitStack() as world:
        # transformers 5.24 spares fake tensors the question whether a mask hides anything; a real run asks,
        # leaves out a mask that hides nothing, and with it the slower kernel.
        world.enter_context(replaced(masking_utils, is_tracing=lambda tensor=None: False))
        if backend.needs_group or request.num_ranks > 1:
            world.enter_context(_group(request.num_ranks))
        if backend.ds_config is not None:
            from launcher.memory.trace_engine_torch import engine_alone

            world.enter_context(engine_alone(request.num_ranks))
        yield


@contextmanager
def _group(num_ranks: int) -> Iterator[None]:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=num_ranks)
    try:
        with (
            replaced(fsdp_torch, init_device_mesh=_real_mesh(init_device_mesh)),
            replaced(_fully_shard, _get_device_from_mesh=lambda mesh: CARD),
            # DDP compares shapes over the ranks by reading memory that is not there (torch 2.13).
            replaced(distributed, _verify_param_shape_across_processes=lambda *given, **named: None),
            replaced(multi_gpu_torch.Reductions, hook=staticmethod(_reduced)),
        ):
            yield
    finally:
        dist.destroy_process_group()


def _real_mesh(plain: Any) -> Any:
    """A mesh of ranks is arithmetic on a small tensor of numbers: it needs its values."""

    def make(*arguments: Any, **named: Any) -> Any:
        with _disable_current_modes():
            return plain(*arguments, **named)

    return make


def _reduced(
    state: Any,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    """A bucket summed over ranks, in place; the fake group's work has no tensor to hand back."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


class _Settled:
    """DDP's reducer without its one new sorting of buckets after the first backward pass (torch 2.13).

    That reads the new order from memory that is not there. The buckets keep their sum of bytes, and the old
    ones are freed before the new ones come (reducer.cpp, initialize_buckets), so no byte is missed.
    """

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reducer, name)

    def _rebuild_buckets(self) -> bool:
        return False


def settle_buckets(module: Any) -> None:
    """Keep DDP's buckets as they were made."""
    if isinstance(module, DistributedDataParallel):
        module.reducer = _Settled(module.reducer)  # type: ignore[assignment]

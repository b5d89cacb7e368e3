"""A world of N ranks in one process: collectives that move nothing, for tensors that hold nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import _disable_current_modes

from launcher.backends import fsdp_torch
from launcher.backends.options import BACKENDS
from launcher.memory.trace_request import TraceRequest


@contextmanager
def fake_world(request: TraceRequest) -> Iterator[None]:
    """Rank 0 of `num_ranks`, where the backend needs a group (torch 2.13's own test group "fake")."""
    if not BACKENDS.get(request.backend).needs_group and request.num_ranks == 1:
        with _masks_looked_at():
            yield
        return
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=request.num_ranks)
    try:
        with _real_meshes(), _masks_looked_at(), _shapes_taken_for_equal():
            yield
    finally:
        dist.destroy_process_group()


@contextmanager
def _real_meshes() -> Iterator[None]:
    """A mesh of ranks is arithmetic on a small tensor of numbers: it needs its values."""
    place: Any = fsdp_torch
    plain = place.init_device_mesh

    def make(*arguments: Any, **named: Any) -> Any:
        with _disable_current_modes():
            return plain(*arguments, **named)

    place.init_device_mesh = make
    try:
        yield
    finally:
        place.init_device_mesh = plain


@contextmanager
def _masks_looked_at() -> Iterator[None]:
    """Make transformers ask whether a mask hides anything, as in a real run (it spares fake tensors that).

    transformers 5.24, masking_utils: a mask that hides nothing is left out, and with it the slower kernel.
    """
    from transformers import masking_utils

    plain = masking_utils.is_tracing
    masking_utils.is_tracing = lambda tensor=None: False
    try:
        yield
    finally:
        masking_utils.is_tracing = plain


@contextmanager
def _shapes_taken_for_equal() -> Iterator[None]:
    """DDP compares shapes over the ranks by reading memory that is not there (torch 2.13)."""
    from torch.nn.parallel import distributed

    place: Any = distributed
    plain = place._verify_param_shape_across_processes
    place._verify_param_shape_across_processes = lambda *arguments, **named: None
    try:
        yield
    finally:
        place._verify_param_shape_across_processes = plain


def hand_buckets_back(module: Any) -> None:
    """DDP's reducer asks its group's work for a tensor, which the fake one has not (torch 2.13)."""
    if isinstance(module, DistributedDataParallel):
        module.register_comm_hook(None, _done)


def _done(
    state: Any,
    bucket: dist.GradBucket,  # type: ignore[name-defined]
) -> torch.futures.Future[torch.Tensor]:
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future

"""Connects DDP: whole copies, gradients summed while backward runs; a window can be taken back.

A rank that runs out of memory leaves the others waiting in the reductions of their backward pass. It takes
part in those that it still owes, with NaN, so that everybody arrives at the vote; then all ranks drop the
window and wrap the module anew, for a reducer that stopped half-way cannot be used again (torch 2.13).
"""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from launcher.backends.multi_gpu import MultiGpuOptions
from launcher.backends.plain_torch import PlainStrategy
from launcher.backends.strategy_torch import CannotCatchUp, Parts, Strategy, mismatch

# DDP sorts its buckets anew after the first backward pass; from then on they stay.
_SETTLED_PASSES = 2
_PIECE_BYTES = 25 * 2**20


class DistributedStrategy(PlainStrategy):
    """One copy a rank; gradients are summed over the ranks, not averaged: the loss is a share already."""

    module: DistributedDataParallel

    def __init__(self, parts: Parts) -> None:
        """Wrap after the optimizer exists: DDP keeps the parameter objects."""
        super().__init__(parts)
        # Votes go over the host, so that no device waits for them.
        on_host = parts.device.type == "cpu"
        self.voters = dist.group.WORLD if on_host else dist.new_group(backend="gloo")
        self._wrap()

    def _wrap(self) -> None:
        ids = [self.parts.device.index or 0] if self.parts.device.type == "cuda" else None
        options = self.parts.options
        megabytes = options.bucket_cap_mb if isinstance(options, MultiGpuOptions) else 25
        self.module = DistributedDataParallel(
            self.parts.module,
            device_ids=ids,
            gradient_as_bucket_view=True,
            bucket_cap_mb=megabytes,
            broadcast_buffers=False,  # constants here; a reduction in forward could not be taken back
        )
        self.reductions = Reductions()
        self.module.register_comm_hook(self.reductions, Reductions.hook)
        self.apart = False  # whether this window is reduced after the vote, not during backward

    def accumulating(self, *, is_last: bool) -> AbstractContextManager[object]:
        """Reduce with the window's last micro batch only."""
        if is_last and not self.apart:
            self.reductions.begin()
            return nullcontext()
        return self.module.no_sync()

    def vote(self, value: int) -> int:
        """The highest value over the ranks."""
        votes = torch.tensor(value)
        dist.all_reduce(votes, op=dist.ReduceOp.MAX, group=self.voters)
        return int(votes)

    def catch_up(self) -> None:
        """Take part in the reductions that the others wait for."""
        self.optimizer.zero_grad(set_to_none=True)
        if not self.apart:
            self.reductions.owe(self.parts.device)

    def abandon(self) -> None:
        """Drop the gradients and wrap anew; the window is then reduced after its vote."""
        super().abandon()
        del self.module
        gc.collect()  # the old reducer's hooks go with it
        self._wrap()
        self.apart = True

    def finish(self) -> None:
        """Sum the gradients now, where backward has not done so."""
        if not self.apart:
            self.reductions.end()
            return
        for piece in _pieces(self._gradients()):
            flat = torch.cat([gradient.flatten() for gradient in piece])
            dist.all_reduce(flat)
            parts = flat.split([gradient.numel() for gradient in piece])
            torch._foreach_copy_(
                piece, [part.view_as(gradient) for part, gradient in zip(parts, piece, strict=True)]
            )
        self.apart = False

    def check(self) -> str:
        """The wrapper is DDP and its group has the planned size."""
        ranks = dist.get_world_size()
        if ranks != self.parts.settings.num_ranks or not isinstance(self.module, DistributedDataParallel):
            raise mismatch(f"{ranks} ranks in the group", f"{self.parts.settings.num_ranks} ranks under DDP")
        return f"multi_gpu: DistributedDataParallel over {ranks} ranks on {self.parts.device.type}"


class Reductions:
    """The reductions of a backward pass: which have begun, and how large each of them is."""

    def __init__(self) -> None:
        """Nothing is known before the buckets have settled."""
        self.begun: list[tuple[int, torch.dtype]] = []
        self.known: list[tuple[int, torch.dtype]] = []
        self.passes = 0
        self.under_way = False

    def begin(self) -> None:
        """The window's last micro batch starts."""
        self.begun, self.under_way = [], True

    def end(self) -> None:
        """Its backward pass is done: every bucket has been seen."""
        self.passes += 1
        self.under_way = False
        if self.passes >= _SETTLED_PASSES:
            self.known = self.begun

    @staticmethod
    def hook(self: "Reductions", bucket: dist.GradBucket) -> Future[Tensor]:  # type: ignore[name-defined]
        """Sum one bucket over the ranks; DDP's default, with a note of it."""
        buffer = bucket.buffer()
        self.begun.append((buffer.numel(), buffer.dtype))
        work = dist.all_reduce(buffer, async_op=True)
        assert work is not None
        reduced: Future[Tensor] = work.get_future().then(_first)
        return reduced

    def owe(self, device: torch.device) -> None:
        """Take part with NaN in what has not begun here. Raises CannotCatchUp where that is not known."""
        if not self.known:
            raise CannotCatchUp
        begun = len(self.begun) if self.under_way else 0  # 0: the others go on to their last micro batch
        for numel, dtype in self.known[begun:]:
            dist.all_reduce(torch.full((numel,), torch.nan, dtype=dtype, device=device))


def _first(future: Future[list[Tensor]]) -> Tensor:
    return future.value()[0]


def _pieces(gradients: list[Tensor]) -> Iterator[list[Tensor]]:
    """Gradients in groups of one type and a bounded size."""
    held: list[Tensor] = []
    size = 0
    for gradient in gradients:
        if held and (size > _PIECE_BYTES or gradient.dtype is not held[0].dtype):
            yield held
            held, size = [], 0
        held.append(gradient)
        size += gradient.nbytes
    if held:
        yield held


def connect(parts: Parts) -> Strategy:
    """The strategy for DDP; the process group must exist."""
    return DistributedStrategy(parts)

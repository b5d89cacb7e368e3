"""Connects DDP: whole copies, gradients averaged while backward runs."""

from contextlib import AbstractContextManager, nullcontext

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from launcher.backends.multi_gpu import MultiGpuOptions
from launcher.backends.plain_torch import PlainStrategy
from launcher.backends.strategy_torch import Parts, Strategy, mismatch


class DistributedStrategy(PlainStrategy):
    """One copy a rank. DDP averages over ranks, so the loss is multiplied by their number."""

    module: DistributedDataParallel

    def __init__(self, parts: Parts) -> None:
        """Wrap after the optimizer exists: DDP keeps the parameter objects."""
        super().__init__(parts)
        ids = [parts.device.index or 0] if parts.device.type == "cuda" else None
        megabytes = parts.options.bucket_cap_mb if isinstance(parts.options, MultiGpuOptions) else 25
        self.module = DistributedDataParallel(
            self.module, device_ids=ids, gradient_as_bucket_view=True, bucket_cap_mb=megabytes
        )
        self.gradient_factor = parts.settings.num_ranks

    def accumulating(self, *, is_last: bool) -> AbstractContextManager[object]:
        """Reduce with the window's last micro batch only."""
        return nullcontext() if is_last else self.module.no_sync()

    def check(self) -> str:
        """The wrapper is DDP and its group has the planned size."""
        ranks = dist.get_world_size()
        if ranks != self.parts.settings.num_ranks or not isinstance(self.module, DistributedDataParallel):
            raise mismatch(f"{ranks} ranks in the group", f"{self.parts.settings.num_ranks} ranks under DDP")
        return f"multi_gpu: DistributedDataParallel over {ranks} ranks on {self.parts.device.type}"


def connect(parts: Parts) -> Strategy:
    """The strategy for DDP; the process group must exist."""
    return DistributedStrategy(parts)

"""From allocated bytes to what the allocator reserves and nvidia-smi shows: a range, not a figure.

The caching allocator keeps freed blocks, and strands those that no later request fits. How much that is
follows the short-lived tensors: `block`, the working set of one block's backward pass, and `logits`, the
loss's tensors. Shares below are the 6th to 94th percentile of (reserved - allocated) over such a sum in
the published runs that had room to spare, by kind of loss and of sharding; never by source or by model.
With little room the allocator gives blocks back before it fails, so a range ends at the card's memory.
"""

from dataclasses import dataclass

from launcher.memory.breakdown import Phase
from launcher.memory.setting import Setting

MIB = 1 << 20
GIB = 1 << 30
# CUDA context and kernels: T4 141 MiB (torch 2.14), A100 about 0.4-0.6 GiB (nvidia-smi minus reserved).
DEFAULT_CONTEXT_BYTES = 450 * MIB
# A communicator's buffers (NCCL: some hundred MiB).
COMMUNICATOR_BYTES = 300 * MIB
# nvidia-smi counts up to this much more than torch sees of a card (A100-80GB: 80 against 79.15 GiB).
DRIVER_BYTES = 870 * MIB
# FSDP frees on another stream than it computes on: most of a further block cannot be used again yet.
SHARDED_BLOCK_SHARE = 0.9


@dataclass(frozen=True, kw_only=True)
class ShortLived:
    """Bytes of what comes and goes within a step: one block's working set, the loss's tensors."""

    block: int
    logits: int


def context_bytes(setting: Setting) -> int:
    """Driver context and, with several ranks, the communicator's buffers."""
    context = setting.context_bytes or DEFAULT_CONTEXT_BYTES
    return context + (COMMUNICATOR_BYTES if setting.num_ranks > 1 else 0)


def reserved_range(
    setting: Setting, peak: Phase, short: ShortLived, usable_bytes: int | None = None
) -> tuple[int, int]:
    """Lowest and highest likely `max_memory_reserved`, in bytes."""
    allocated = peak.num_bytes
    low, high = _stranded(setting, allocated, short)
    if setting.variable_length:
        # Every length leaves blocks of its own size: nvidia-smi / allocated 1.49 to 1.72 in the median.
        low, high = low + 0.1 * allocated, high + 0.45 * allocated
    low, high = max(low, 0.005 * allocated), max(high, 0.02 * allocated)
    if usable_bytes is not None:
        room = max(0.0, usable_bytes - context_bytes(setting) - allocated)
        if high > room:
            low, high = min(low, 0.005 * allocated, room), room
    return int(allocated + low), int(allocated + high)


def _stranded(setting: Setting, allocated: int, short: ShortLived) -> tuple[float, float]:
    block, logits = short.block, short.logits
    most, least = max(block, logits), min(block, logits)
    trains_base = setting.adapter is None
    if setting.sharding_kind in ("fsdp1", "zero2", "zero3"):
        base = min(3 * GIB, 0.8 * allocated)
        if trains_base:
            centre = base + 0.5 * most
            return 1.0 * centre, 3.4 * centre
        centre = base + 0.5 * block + 0.8 * (logits - least)
        return 0.6 * centre, 1.5 * centre
    if trains_base:
        centre = 3 * GIB + 0.5 * block if allocated > 20 * GIB else 0.1 * allocated + 0.5 * most
        return 0.1 * centre, 1.7 * centre
    if setting.loss in ("linear_fused", "chunked"):
        return 0.17 * block, 0.31 * block + 0.25 * GIB
    if setting.loss == "fused":
        return 0.6 * logits, 1.55 * logits
    centre = 0.03 * allocated + 0.3 * block + 0.2 * logits
    return (0.3 * centre, 1.35 * centre) if setting.attention == "eager" else (0.15 * centre, 1.45 * centre)


def process_range(setting: Setting, reserved: tuple[int, int], usable_bytes: int | None) -> tuple[int, int]:
    """The same with the context, which is 141 to 600 MiB where no one measured it."""
    context = context_bytes(setting)
    below, above = (0, 0) if setting.context_bytes else (309 * MIB, 150 * MIB)
    high = reserved[1] + context + above
    most = high if usable_bytes is None else min(high, usable_bytes + DRIVER_BYTES)
    low = reserved[0] + context - below
    return low, max(low, most)

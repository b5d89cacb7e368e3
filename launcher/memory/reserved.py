"""From allocated bytes to what the allocator reserves and nvidia-smi shows: a range, not a figure.

The caching allocator keeps freed blocks, and strands those that no later request fits. How much that is
follows the short-lived tensors: `block`, the working set of one block's backward pass, and `logits`, the
loss's tensors. Shares below are the 6th to 94th percentile of (reserved - allocated) over such a sum in
the published runs that had room to spare, by kind of loss and of sharding; never by source or by model.
With little room the allocator gives blocks back before it fails, so a range ends at the card's memory.
"""

from dataclasses import dataclass

from launcher.memory.breakdown import Breakdown, Phase
from launcher.memory.setting import Setting

MIB = 1 << 20
GIB = 1 << 30
# CUDA context and kernels: T4 141 MiB (torch 2.14), A100 about 0.4-0.6 GiB (nvidia-smi minus reserved).
DEFAULT_CONTEXT_BYTES = 450 * MIB
# A communicator's buffers (NCCL: some hundred MiB).
COMMUNICATOR_BYTES = 300 * MIB
# nvidia-smi counts up to this much more than torch sees of a card (A100-80GB: 80 against 79.15 GiB).
DRIVER_BYTES = 870 * MIB
# Of allocated bytes, beside the context. Long-lived tensors pack well: full training was seen to fit at
# 94.5 % of a card (peak in the optimizer step). Where short-lived tensors decide, 91.6 % fitted, 92.4 % not.
LONG_LIVED_MARGIN = 0.04
SHORT_LIVED_MARGIN = 0.082
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
    if setting.sharding_kind in ("fsdp1", "zero2", "zero3", "fsdp2"):
        if trains_base:
            centre = 3 * GIB + 0.5 * most
            return 1.0 * centre, 3.4 * centre
        centre = 3 * GIB + 0.5 * block + 0.8 * (logits - least)
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
    return reserved[0] + context - below, most


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether it fits, and the figures that say so, in bytes: needed = allocated + context + margin."""

    fits: bool
    phase: str
    allocated_bytes: int
    context_bytes: int
    margin_bytes: int
    usable_bytes: int

    @property
    def needed_bytes(self) -> int:
        """Memory that a card must offer."""
        return self.allocated_bytes + self.context_bytes + self.margin_bytes


def fits(breakdown: Breakdown, usable_bytes: int) -> Verdict:
    """Decide on what is allocated, the context and a margin for stranded blocks; not on nvidia-smi's range.

    `usable_bytes`: what torch sees of the card (`torch.cuda.get_device_properties(...).total_memory`).
    """
    worst = max(breakdown.phases, key=lambda phase: phase.num_bytes + margin_bytes(breakdown, phase))
    context = breakdown.context_bytes
    margin = margin_bytes(breakdown, worst)
    return Verdict(
        fits=worst.num_bytes + context + margin <= usable_bytes,
        phase=worst.name,
        allocated_bytes=worst.num_bytes,
        context_bytes=context,
        margin_bytes=margin,
        usable_bytes=usable_bytes,
    )


def margin_bytes(breakdown: Breakdown, phase: Phase) -> int:
    """What to leave free in a phase: more where short-lived tensors decide, most where streams overlap."""
    if phase.name in ("load", "optimizer", "save"):
        return int(LONG_LIVED_MARGIN * phase.num_bytes)
    return int(SHORT_LIVED_MARGIN * phase.num_bytes) + breakdown.overlap_bytes

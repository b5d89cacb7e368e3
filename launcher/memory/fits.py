"""Whether an estimate fits a card: allocated memory, context and a margin, against what the card has."""

from dataclasses import dataclass

from launcher.memory.breakdown import Breakdown, Phase

# Of allocated bytes, beside the context. Long-lived tensors pack well: full training was seen to fit at
# 94.5 % of a card (peak in the optimizer step). Where short-lived tensors decide, 91.6 % fitted, 92.4 % not.
LONG_LIVED_MARGIN = 0.04
SHORT_LIVED_MARGIN = 0.082


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


def needed_bytes(breakdown: Breakdown) -> int:
    """What a card must offer for the worst phase: allocated, context and margin."""
    return fits(breakdown, 0).needed_bytes

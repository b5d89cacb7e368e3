"""Memory that ran out, in words: in which phase, because of what, and what would save how much."""

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from launcher.errors import OutOfMemory, Problem
from launcher.plan.savings import Saving
from launcher.units import format_bytes

# As torch's allocators, cuBLAS, cuDNN and NCCL say it.
_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "not enough memory",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "cudnn_status_not_supported_out_of_memory",
)
_ASKED = re.compile(r"tried to allocate ([\d.]+) ?(bytes|[kmgt]i?b)", re.IGNORECASE)
_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
# A row so many times the median is what a step ran out of memory for.
_LONG = 2.0
EXPANDABLE = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this is an allocation that failed, on a device or on the host."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """What was known when an allocation failed. Bytes; zeros where a device does not say."""

    phase: str
    asked_bytes: int
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    total_bytes: int = 0

    @property
    def is_fragmented(self) -> bool:
        """The allocator holds enough, but in pieces."""
        return 0 < self.asked_bytes <= self.reserved_bytes - self.allocated_bytes


def shortage(error: BaseException, phase: str, device: torch.device) -> Shortage:
    """Read the error and the allocator, before anything is freed. Keeps no reference to either."""
    names = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    part = "backward" if phase == "forward" and "backward" in names else phase
    asked = asked_bytes(str(error))
    if device.type != "cuda":
        return Shortage(phase=part, asked_bytes=asked)
    return Shortage(
        phase=part,
        asked_bytes=asked,
        allocated_bytes=torch.cuda.memory_allocated(device),
        reserved_bytes=torch.cuda.memory_reserved(device),
        total_bytes=torch.cuda.get_device_properties(device).total_memory,
    )


def asked_bytes(text: str) -> int:
    """The size of the allocation that failed, as torch writes it; 0 where the text does not say."""
    match = _ASKED.search(text)
    if not match:
        return 0
    unit = match.group(2).lower()
    return int(float(match.group(1)) * (1 if unit == "bytes" else _UNITS[unit[0]]))


def cause(found: Shortage, lengths: Sequence[int], median: int) -> str:
    """Fragmentation, unusually long rows, or simply too much. `lengths` of the window's rows, in tokens."""
    if found.is_fragmented:
        held = format_bytes(found.reserved_bytes - found.allocated_bytes)
        return (
            f"fragmentation: the allocator holds {held} more than is in use, in pieces ({EXPANDABLE} helps)"
        )
    longest = max(lengths, default=0)
    if median and longest > _LONG * median:
        return f"data: this step has a row of {longest} tokens, half of all rows have at most {median}"
    return f"the step itself: rows of up to {longest} tokens are usual here"


def amounts(found: Shortage) -> str:
    """Asked for, allocated, reserved and total, as far as they are known."""
    parts = [f"{format_bytes(found.asked_bytes)} more were asked for"] if found.asked_bytes else []
    if found.total_bytes:
        parts.append(
            f"{format_bytes(found.allocated_bytes)} were allocated, {format_bytes(found.reserved_bytes)} "
            f"reserved, of {format_bytes(found.total_bytes)}"
        )
    return "; ".join(parts)


def out_of_memory(
    found: Shortage, *, where: str, why: str, levers: Sequence[Saving], typed: str
) -> OutOfMemory:
    """The error for a person. `typed` continues the run."""
    sizes = amounts(found)
    saved = ", ".join(f"{each.typed} (about {format_bytes(each.num_bytes)})" for each in levers)
    return OutOfMemory(
        Problem(
            where=where,
            what=f"out of memory in {found.phase}{': ' + sizes if sizes else ''}. {why}",
            right=f"less at once: {saved}"
            if saved
            else "less at once, or more cards: `launcher plan` says what",
            type=typed,
        )
    )


def while_loading(error: BaseException, device: torch.device) -> OutOfMemory:
    """The error where the model itself found no room: no smaller batch helps."""
    found = shortage(error, "loading", device)
    gone = "This is before the first batch: the weights themselves, or another process on the card"
    typed = (
        "nvidia-smi to see who holds memory, then launcher plan RECIPE: load_in_4bit, or a sharded backend"
    )
    return out_of_memory(found, where="model", why=gone, levers=(), typed=typed)

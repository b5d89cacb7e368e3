"""Measured memory of one rank, by phase, at no cost that can be measured a step.

The counters are read in the first steps, whose buffers and states are those of every later one, and around
evaluation and saving; the overall peak is that of the whole run, whatever was read between.
"""

import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from launcher import heartbeat

# Visits of a phase that are read: the first step allocates states, the next ones show them in place.
STEPS = 4
_RESIDENT = Path("/proc/self/statm")


class MemoryWatch:
    """Peaks so far: allocated and reserved on a GPU, resident on a CPU. Bytes."""

    def __init__(self, device: torch.device) -> None:
        """Start with what this process holds already."""
        self.device = device
        self.is_cuda = device.type == "cuda"
        self.phases: dict[str, int] = {}
        self.visits: dict[str, int] = {}
        self.allocated = self.reserved = 0
        self.resident_at_start = resident_bytes()

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Note the peak inside; after the first visits of a phase, and without a name, nothing is done.

        That a phase begins is a sign of life, seen by whoever watches this rank.
        """
        heartbeat.beat(name or "between steps")
        self.visits[name] = self.visits.get(name, 0) + 1
        return self._phase(name) if name and self.visits[name] <= STEPS else nullcontext()

    def mark(self, name: str) -> None:
        """Note the peak since the beginning, or since the last phase."""
        self.phases[name] = self._fold() if self.is_cuda else resident_bytes()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self._fold()
        yield
        peak = self._fold() if self.is_cuda else resident_bytes()
        self.phases[name] = max(self.phases.get(name, 0), peak)

    def _fold(self) -> int:
        """The peak since the last call, taken over into the run's, and the counter set back."""
        if not self.is_cuda:
            return 0
        allocated = torch.cuda.max_memory_allocated(self.device)
        self.allocated = max(self.allocated, allocated)
        self.reserved = max(self.reserved, torch.cuda.max_memory_reserved(self.device))
        torch.cuda.reset_peak_memory_stats(self.device)
        return int(allocated)

    def peak_bytes(self) -> int:
        """The run's peak so far: allocated on a GPU, resident on a CPU."""
        if self.is_cuda:
            return max(self.allocated, int(torch.cuda.max_memory_allocated(self.device)))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def now_bytes(self) -> int:
        """What is held at this moment: allocated on a GPU (a counter of the host's), resident on a CPU."""
        return int(torch.cuda.memory_allocated(self.device)) if self.is_cuda else resident_bytes()

    def result(self) -> dict[str, Any]:
        """Everything, in plain types."""
        found: dict[str, Any] = {"phases": dict(self.phases)}
        if self.is_cuda:
            self._fold()
            return found | {"peak_allocated_bytes": self.allocated, "peak_reserved_bytes": self.reserved}
        start = {"resident_at_start_bytes": self.resident_at_start} if self.resident_at_start else {}
        return found | {"peak_resident_bytes": self.peak_bytes(), **start}


def resident_bytes() -> int:
    """What this process holds in main memory now; 0 where the system does not say (macOS)."""
    if not _RESIDENT.is_file():
        return 0
    return int(_RESIDENT.read_text().split()[1]) * resource.getpagesize()

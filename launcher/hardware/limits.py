"""How many cores and how much host memory this process may really use, and who says so.

The least of what the host has, what control groups grant, and what the affinity allows. Thread
counts, worker counts and memory plans all start from here.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from launcher.hardware import cgroup
from launcher.units import format_bytes

ROOT = Path("/")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """An amount (cores, or bytes) and the source that set it."""

    amount: int
    source: str


def cores(root: Path = ROOT) -> Limit:
    """Cores to keep busy. A quota of 2.5 CPUs counts as 2, one below 1 as 1."""
    return min(_core_limits(root), key=lambda limit: limit.amount)


def _core_limits(root: Path) -> Iterator[Limit]:
    yield Limit(amount=os.cpu_count() or 1, source="CPUs of the host")
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        yield Limit(amount=len(os.sched_getaffinity(0)), source="CPU affinity of this process")
    for num_cpus, source in cgroup.cpusets(root):
        yield Limit(amount=max(1, num_cpus), source=source)
    for quota, source in cgroup.cpu_quotas(root):
        yield Limit(amount=max(1, math.floor(quota)), source=f"{source} ({quota:g} CPUs)")


def host_memory_bytes(root: Path = ROOT) -> Limit:
    """Bytes of main memory this process may hold before it is killed."""
    return min(_memory_limits(root), key=lambda limit: limit.amount)


def _memory_limits(root: Path) -> Iterator[Limit]:
    yield Limit(amount=_physical_bytes(root), source="memory of the host")
    for num_bytes, source in cgroup.memory_limits(root):
        yield Limit(amount=num_bytes, source=f"{source} ({format_bytes(num_bytes)})")


def _physical_bytes(root: Path) -> int:
    meminfo = root / "proc/meminfo"
    if not meminfo.is_file():  # not on macOS
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    total = next(line for line in meminfo.read_text().splitlines() if line.startswith("MemTotal:"))
    return int(total.split()[1]) * 1024

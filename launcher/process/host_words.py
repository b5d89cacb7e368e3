"""What this machine says about a killed process: its memory groups before and after, the size of /dev/shm."""

import os
from dataclasses import dataclass
from pathlib import Path

from launcher.hardware.cgroup import MemoryUse, memory_use
from launcher.hardware.limits import ROOT, host_memory_bytes
from launcher.units import format_bytes

SMALL_SHM_BYTES = 2**30
_LOWER = "lower dataloader_num_workers and the number of ranks, or raise the limit"


@dataclass(frozen=True, kw_only=True)
class HostBefore:
    """The counters of kills as they were before a run, by group; `root` is `/` except in tests."""

    root: Path
    kills: dict[str, int]

    def killed_words(self) -> str:
        """Whether the kernel killed for want of memory, with figures; empty where nothing can be read."""
        uses = memory_use(self.root)
        grown = [use for use in uses if (use.oom_kills or 0) > self.kills.get(use.source, 0)]
        if grown:
            limited = next((use for use in grown if use.limit_bytes is not None), grown[0])
            return f"killed by the kernel for want of host memory: {self._figures(limited)}; {_LOWER}"
        counted = next((use for use in uses if use.oom_kills is not None), None)
        if counted is None:
            return ""
        return (
            "killed from outside, not by this container's memory limit, which has not killed since the "
            f"start ({self._figures(counted)}): by a person or a scheduler, or by the host's own want of "
            "memory (`dmesg`)"
        )

    def _figures(self, use: MemoryUse) -> str:
        limit = use.limit_bytes if use.limit_bytes is not None else host_memory_bytes(self.root).amount
        of = f"of {format_bytes(limit)}" + ("" if use.limit_bytes is not None else " of the host")
        peak = (
            f"peak {format_bytes(use.peak_bytes)} {of}" if use.peak_bytes is not None else f"limit {of[3:]}"
        )
        return f"{peak}, {use.source}"

    def shm_words(self) -> str:
        """The size of /dev/shm beside a bus error; empty where there is none."""
        folder = self.root / "dev/shm"
        if not folder.is_dir():
            return ""
        found = os.statvfs(folder)
        size, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        figures = f"/dev/shm is {format_bytes(size)}, {format_bytes(free)} of it free now"
        if size <= SMALL_SHM_BYTES:
            return (
                f"bus error: {figures}; start the container with --shm-size 8g, or dataloader_num_workers=0"
            )
        return (
            f"bus error: a mapped file got shorter or could not be read, or /dev/shm was full ({figures}); "
            "check the disk of data and cache, or dataloader_num_workers=0"
        )


def before(root: Path = ROOT) -> HostBefore:
    """Note the counters now."""
    kills = {use.source: use.oom_kills for use in memory_use(root) if use.oom_kills is not None}
    return HostBefore(root=root, kills=kills)

"""Host memory that is free to take now, control groups included. No torch."""

from pathlib import Path

from launcher.hardware import cgroup
from launcher.hardware.limits import host_memory_bytes

ROOT = Path("/")
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
_CACHE = ("inactive_file", "total_inactive_file")


def available_bytes(root: Path = ROOT) -> int:
    """The least of what the kernel calls available and what every control group has left."""
    found = [host_memory_bytes(root).amount]
    meminfo = root / "proc/meminfo"
    if meminfo.is_file():  # not on macOS
        lines = (line.split() for line in meminfo.read_text().splitlines())
        found += [int(line[1]) * 1024 for line in lines if line[0] == "MemAvailable:"]
    found += [left for group in cgroup.groups(root, "memory") if (left := _left(group)) is not None]
    return max(0, min(found))


def _left(group: cgroup.Group) -> int | None:
    """What a group may still take: page cache that nobody uses counts as free."""
    limit = _text(group.folder / ("memory.max" if group.version == 2 else "memory.limit_in_bytes"))
    used = _text(group.folder / _USED[group.version])
    if not (limit.isdecimal() and used.isdecimal()):
        return None
    pairs = [line.split() for line in _text(group.folder / "memory.stat").splitlines()]
    cached = max((int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in _CACHE), default=0)
    return int(limit) - int(used) + cached


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

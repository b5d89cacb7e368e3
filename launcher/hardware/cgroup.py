"""What a container may use: memory and CPU limits of control groups, version 1 and 2.

Limits stand on every level between this process's group and the mount point, and the tightest one
counts. `/proc/meminfo` and the CPU count know nothing of them. Files are read below `root`, which is
`/` except in tests. This module reads; `limits` decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, kw_only=True)
class Group:
    """One level of one hierarchy: its folder, and the controllers that may be found there."""

    version: int
    folder: Path
    name: str


def groups(root: Path, controller: str) -> Iterator[Group]:
    """The levels that govern this process for `memory`, `cpu` or `cpuset`, innermost first."""
    paths = _own_paths(root)
    for version, controllers, top, mount in _mounts(root):
        key = "" if version == 2 else controller
        if key in paths and (version == 2 or controller in controllers):
            yield from _ancestry(root, version, top, mount, paths[key])


def _own_paths(root: Path) -> dict[str, str]:
    """Controller to this process's group, from `/proc/self/cgroup`; version 2 has no controller: ''."""
    found: dict[str, str] = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _mounts(root: Path) -> Iterator[tuple[int, list[str], str, str]]:
    """Version, controllers, mounted group and mount point of every hierarchy."""
    for line in _lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        top, mount = before.split()[3:5]
        kind, *_, options = after.split()
        if kind in ("cgroup", "cgroup2"):
            yield (2 if kind == "cgroup2" else 1), options.split(","), top, mount


def _ancestry(root: Path, version: int, top: str, mount: str, own: str) -> Iterator[Group]:
    """From the process's own group up to the mount point.

    In a container the group named by `/proc/self/cgroup` may lie outside what is mounted; then the
    mount point itself is the container's group.
    """
    inside = PurePosixPath(own)
    relative = inside.relative_to(top) if inside.is_relative_to(top) else PurePosixPath()
    if ".." in relative.parts:
        relative = PurePosixPath()
    base = root / mount.lstrip("/")
    for level in [relative, *relative.parents] if relative.parts else [relative]:
        if (base / level).is_dir():
            yield Group(version=version, folder=base / level, name=str(PurePosixPath("/") / level))


def memory_limits(root: Path) -> Iterator[tuple[int, str]]:
    """Bytes and where they are said, for every level that says something."""
    files = {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")}
    for group in groups(root, "memory"):
        for name in files[group.version]:
            text = _text(group.folder / name)
            if text.isdecimal():
                yield int(text), f"cgroup v{group.version} {name} of {group.name}"


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """What one level says of its memory: most bytes held so far, its limit, kills for want of it.

    `source` names version and group. A file that the kernel does not offer leaves a None.
    """

    peak_bytes: int | None
    limit_bytes: int | None
    oom_kills: int | None
    source: str


_USE_FILES = {
    1: ("memory.max_usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control"),
    2: ("memory.peak", "memory.max", "memory.events"),
}
_NO_LIMIT = 2**60  # version 1 writes a number near 2**63 where there is none


def memory_use(root: Path) -> list[MemoryUse]:
    """Every level's use, innermost first; levels that say nothing are left out."""
    found = [_use(group) for group in groups(root, "memory")]
    return [use for use in found if (use.peak_bytes, use.limit_bytes, use.oom_kills) != (None, None, None)]


def _use(group: Group) -> MemoryUse:
    peak, limit, events = _USE_FILES[group.version]
    limit_bytes = _number(group.folder / limit)
    return MemoryUse(
        peak_bytes=_number(group.folder / peak),
        limit_bytes=limit_bytes if limit_bytes is not None and limit_bytes < _NO_LIMIT else None,
        oom_kills=_counted(group.folder / events, "oom_kill"),
        source=f"cgroup v{group.version} {group.name}",
    )


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _counted(path: Path, key: str) -> int | None:
    """The count behind a name, in files of `name count` lines."""
    pairs = [line.split() for line in _lines(path)]
    return next((int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == key), None)


def cpu_quotas(root: Path) -> Iterator[tuple[float, str]]:
    """CPUs worth of time that every level grants, and where that is said."""
    for group in groups(root, "cpu"):
        quota, period, name = _quota(group)
        if quota.isdecimal() and period.isdecimal() and int(period):
            yield int(quota) / int(period), f"cgroup v{group.version} {name} of {group.name}"


def _quota(group: Group) -> tuple[str, str, str]:
    if group.version == 2:
        quota, _, period = _text(group.folder / "cpu.max").partition(" ")
        return quota, period, "cpu.max"
    name = "cpu.cfs_quota_us"
    return _text(group.folder / name), _text(group.folder / "cpu.cfs_period_us"), name


def cpusets(root: Path) -> Iterator[tuple[int, str]]:
    """Number of CPUs that every level allows, and where that is said."""
    for group in groups(root, "cpuset"):
        name = "cpuset.cpus.effective" if group.version == 2 else "cpuset.cpus"
        text = _text(group.folder / name)
        if text:
            yield count_cpus(text), f"cgroup v{group.version} {name} of {group.name}"


def count_cpus(text: str) -> int:
    """How many CPUs a list such as `0-3,8` names."""
    ends = [part.partition("-") for part in text.split(",") if part]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    """A control file's text; one that is absent says nothing."""
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

"""Disks by mount point: what is free on each, in bytes and in files, and the biggest folder on one."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from launcher.units import format_bytes

_LOOKED_AT = 200_000


class Statvfs(Protocol):
    """`os.statvfs`, or a stand-in: of its result, the block size and what is free are read."""

    def __call__(self, path: Path, /) -> os.statvfs_result:
        """The figures of the file system that holds `path`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Room:
    """One mounted disk. `free_files` is None where the file system does not count files."""

    mount: Path
    total_bytes: int
    free_bytes: int
    free_files: int | None

    def line(self) -> str:
        """As `df -h` and `df -i` would say it together."""
        files = "" if self.free_files is None else f", room for {self.free_files:,} files"
        free, total = format_bytes(self.free_bytes), format_bytes(self.total_bytes)
        return f"{self.mount}: {free} free of {total}{files}"


def mount_points(root: Path = Path("/")) -> list[Path]:
    """Where disks are mounted, as the kernel lists them; `/` alone where it lists none."""
    listed = root / "proc/self/mountinfo"
    text = listed.read_text(encoding="utf-8") if listed.is_file() else ""
    found = [_unescaped(line.split()[4]) for line in text.splitlines() if len(line.split()) > 4]
    return [Path(each) for each in found] or [Path("/")]


def _unescaped(text: str) -> str:
    """The kernel writes blanks in octal."""
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def existing(place: Path) -> Path:
    """The place itself, or the nearest folder above it that is there, links followed.

    What this user may not look into counts as not there: the disk is that of the folder above.
    """
    whole = place.absolute()
    return next(each for each in (whole, *whole.parents) if os.path.exists(each)).resolve()  # noqa: PTH110


def mount_of(place: Path, mounts: list[Path]) -> Path:
    """The mount point that a folder lies on, which may not be there yet."""
    found = existing(place)
    above = [mount for mount in mounts if found.is_relative_to(mount)]
    return max(above, key=lambda mount: len(mount.parts), default=Path(found.anchor))


def room_at(mount: Path, statvfs: Statvfs = os.statvfs) -> Room:
    """What is free there for this user."""
    figures = statvfs(mount)
    return Room(
        mount=mount,
        total_bytes=figures.f_blocks * figures.f_frsize,
        free_bytes=figures.f_bavail * figures.f_frsize,
        free_files=figures.f_favail if figures.f_files else None,
    )


def rooms(places: Mapping[str, Path], mounts: list[Path], statvfs: Statvfs = os.statvfs) -> dict[Path, Room]:
    """Every disk that one of the named places lies on, once."""
    found = {mount_of(place, mounts) for place in places.values()}
    return {mount: room_at(mount, statvfs) for mount in sorted(found)}


def biggest_folder(places: list[Path], mount: Path) -> tuple[Path, int] | None:
    """The folder right below one of the places that holds most, and its bytes; links are not followed.

    At most 200,000 files are looked at: it is for a message, and network disks are slow.
    """
    left = [_LOOKED_AT]
    sizes = {
        folder: _size(folder, left)
        for place in places
        if os.access(place, os.R_OK | os.X_OK)
        for folder in sorted(place.iterdir())
        if folder.is_dir() and not folder.is_symlink() and folder.resolve().is_relative_to(mount)
    }
    return max(sizes.items(), key=lambda item: item[1], default=None)


def _size(folder: Path, left: list[int]) -> int:
    return sum(_bytes_below(folder, left))


def _bytes_below(folder: Path, left: list[int]) -> Iterator[int]:
    for here, _, names in os.walk(folder):
        for name in names:
            if left[0] <= 0:
                return
            left[0] -= 1
            path = Path(here) / name
            if not path.is_symlink() and path.exists():
                yield path.stat().st_size

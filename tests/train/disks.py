"""A small real disk: a file system in memory, mounted for a test."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """Mount it at `place`; the test is skipped where mounting is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=0777"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "none", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, *, left_bytes: int = 20_000) -> Path:
    """Another program's file that takes all but so much."""
    path = place / "filler"
    free = shutil.disk_usage(place).free
    with path.open("wb") as file:
        file.write(bytes(max(0, free - left_bytes)))
    return path

"""The other ranks on this machine, found by their environment: which of them are gone."""

import os
from collections.abc import Mapping
from pathlib import Path

from launcher.process.children import is_zombie

_KEYS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")


def missing_ranks(environ: Mapping[str, str]) -> list[int]:
    """Ranks of this machine of which no process is left. Empty where that cannot be told (not Linux)."""
    size = _number(environ, "LOCAL_WORLD_SIZE") or _number(environ, "LOCAL_SIZE")
    rank, local = _number(environ, "RANK"), _number(environ, "LOCAL_RANK")
    if not size or rank is None or local is None or not Path("/proc/self/environ").exists():
        return []
    first = rank - local
    alive = {found for pid in _pids() if (found := _rank_of(pid, environ)) is not None}
    return [each for each in range(first, first + size) if each not in alive]


def _number(environ: Mapping[str, str], key: str) -> int | None:
    text = environ.get(key, "")
    return int(text) if text.isdigit() else None


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _rank_of(pid: int, environ: Mapping[str, str]) -> int | None:
    """The rank that the process is, or works for: data workers inherit it, and end with it."""
    if pid == os.getpid():
        return _number(environ, "RANK")
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # gone meanwhile, or another user's
        return None
    theirs = dict(word.partition("=")[::2] for word in words)
    same = all(theirs.get(key) == environ.get(key) for key in _KEYS)
    return _number(theirs, "RANK") if same and not is_zombie(pid) else None

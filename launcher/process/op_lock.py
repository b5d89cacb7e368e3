"""Locks that a killed compilation of a DeepSpeed op leaves behind; every later run would wait for ever.

torch (utils/file_baton.py) creates the file and keeps it open until the build is done: a lock that
no process has open has no owner.
"""

import os
from collections.abc import Mapping
from pathlib import Path


def clear_stale_locks(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Remove ownerless locks below torch's extension folder; one line for each removed or doubtful one."""
    return tuple(filter(None, (_clear(lock) for lock in _locks(environ))))


def stale_locks(environ: Mapping[str, str]) -> list[Path]:
    """Locks that nobody holds; nothing is removed."""
    return [lock for lock in _locks(environ) if not has_owner(lock)]


def _locks(environ: Mapping[str, str]) -> list[Path]:
    root = Path(environ.get("TORCH_EXTENSIONS_DIR") or Path.home() / ".cache" / "torch_extensions")
    return [*root.glob("*/lock"), *root.glob("*/*/lock")]


def _clear(lock: Path) -> str:
    try:
        status = lock.stat()
        if has_owner(lock):
            return ""
        if status.st_uid != os.getuid():
            return f"waiting for {lock}: another user's compilation; remove it if that run is dead"
        lock.unlink()
    except FileNotFoundError:  # its owner finished, or another rank removed it
        return ""
    return f"removed {lock}: left behind by a compilation that was killed"


def has_owner(lock: Path) -> bool:
    """Whether any process that can be looked into has the file open."""
    target = lock.resolve()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(descriptor.readlink() == target for descriptor in (process / "fd").iterdir()):
                return True
        except OSError:  # gone meanwhile, or another user's
            continue
    return False

"""The processes below this one, found again after their starter died."""

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from launcher.process.orphan import parent_of

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make this process the new parent of descendants whose own parent dies (Linux).

    torchrun gives every rank a session of its own, so no process group holds them all.
    """
    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):  # not Linux: no prctl
        return


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, children before grandchildren; the dead that nobody reaped left out."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        parent = parent_of(int(entry.name))
        if parent is not None and not is_zombie(int(entry.name)):
            children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(pid, []))
    for child in found:
        found += children.get(child, [])
    return found


def is_zombie(pid: int) -> bool:
    """Whether the process has ended and only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def send(pids: Iterable[int], number: int) -> None:
    """The signal to each of them that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_all(linger_s: float) -> list[int]:
    """Wait so long for everything below this process to end, kill the rest; returns what was killed."""
    deadline = time.monotonic() + linger_s
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.05)
    send(left, signal.SIGKILL)
    _reap()
    return left


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                return
        except ChildProcessError:
            return

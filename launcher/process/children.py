"""The processes below this one, found again after their starter died."""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher.process.watchdog import parent_of

_PR_SET_CHILD_SUBREAPER = 36


@contextmanager
def adopting_orphans() -> Iterator[frozenset[int]]:
    """Be the new parent of descendants whose own parent dies (Linux); yields the children of before.

    torchrun gives every rank a session of its own, so no process group holds them all.
    """
    _set_subreaper(1)
    try:
        yield frozenset(descendants(os.getpid()))
    finally:
        _set_subreaper(0)


def _set_subreaper(on: int) -> None:
    try:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0)
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
    """Whether the process has ended, reaped or not."""
    return state(pid) in ("Z", "")


def state(pid: int) -> str:
    """The kernel's letter for what the process does (proc(5)); empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def send(pids: Iterable[int], number: int) -> None:
    """The signal to each of them that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def end_all(
    linger_s: float, spared: frozenset[int], patience_s: Callable[[], float] = lambda: 0.0
) -> list[int]:
    """Wait so long for everything below this process to end, kill the rest; returns what was killed.

    `patience_s` is asked until when (monotonic clock) somebody is still saving.
    """
    deadline = time.monotonic() + linger_s
    seen: set[int] = set()
    empty_looks = 0  # one look is no proof: a process that changes its parent meanwhile is not seen
    while empty_looks < 2 and time.monotonic() < max(deadline, patience_s()):
        left = _below(spared)
        seen.update(left)
        empty_looks = 0 if left else empty_looks + 1
        time.sleep(0.05)
    left = _below(spared)
    send(left, signal.SIGKILL)
    for pid in seen:
        _reap(pid, os.WNOHANG if pid not in left else 0)
    return left


def _below(spared: frozenset[int]) -> list[int]:
    return [pid for pid in descendants(os.getpid()) if pid not in spared]


def _reap(pid: int, options: int) -> None:
    try:
        os.waitpid(pid, options)
    except ChildProcessError:  # never became ours, or was reaped already
        return

"""One process at a time prepares an entry; the others wait for its file.

The lock is the operating system's (flock): it ends with its holder, so that a lock file left behind by a
dead process holds nobody up. Where a file system has no such locks two processes may do the same work;
both results are whole, and the last rename wins.
"""

import errno
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher import heartbeat

_POLL_S = 0.1
_SAY_AFTER_S = 2.0
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def locked(path: Path, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock; waits as long as another holds it, and says once for whom. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(descriptor, say)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)  # gives the lock up


def _acquire(descriptor: int, say: Callable[[str], object]) -> None:
    started, said = time.monotonic(), False
    while not _try(descriptor):
        if not said and time.monotonic() - started > _SAY_AFTER_S:
            said = True
            say(f"waiting for {holder(descriptor)}, which prepares the same data")
        heartbeat.beat("waiting for prepared data")
        time.sleep(_POLL_S)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return True


def holder(descriptor: int) -> str:
    """Who wrote itself into the lock file last."""
    return os.pread(descriptor, 200, 0).decode(errors="replace") or "another process"


def is_held(path: Path) -> bool:
    """Whether some process holds the lock now."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try(descriptor)
    finally:
        os.close(descriptor)

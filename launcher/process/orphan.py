"""A rank ends with its starter: nothing keeps a card busy after the command that was typed is gone.

The kernel tells a child of its parent's death (prctl). DeepSpeed's `deepspeed` is the grandparent
and dies without a word to anybody, so a thread watches both. The same thread bounds how long a rank
takes to stop once a signal arrived: Python runs handlers only between bytecodes of the main thread,
which may hang in a collective whose other half is gone.
"""

import ctypes
import os
import select
import signal
import threading
import time
from pathlib import Path

from launcher.errors import EXIT_RESUMABLE
from launcher.facts import Starter
from launcher.process.exit_codes import write_exit_code

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.2
GRACE_S = 1.4  # with the poll and a starter's own second of polling, all is over within two or three seconds


def end_with_parent(starter: Starter, grace_s: float = GRACE_S) -> None:
    """Call first thing in a rank, from the main thread. A bare python start has no starter: nothing to do.

    The starter's death arrives as SIGTERM; a rank that has not ended `grace_s` after a signal is ended.
    """
    if starter.name == "python":
        return
    watched = _starters(starter.name)
    ask_for_signal_on_parent_death()
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    watcher = threading.Thread(
        target=_watch, args=(watched, readable, grace_s), name="orphan-watch", daemon=True
    )
    watcher.start()


def ask_for_signal_on_parent_death(number: int = signal.SIGTERM) -> None:
    """Linux's PR_SET_PDEATHSIG for this process; survives exec. Elsewhere the watcher is alone."""
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    except (OSError, AttributeError):  # not Linux: no prctl
        return


def parent_of(pid: int) -> int | None:
    """The parent's pid, or None where the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[1])


def _starters(name: str) -> list[tuple[int, int | None]]:
    """(process, its parent as of now) for each link of the chain that belongs to the starter.

    The shell above it is not one: `nohup accelerate launch ... &` must outlive a logout.
    """
    links: list[tuple[int, int | None]] = [(os.getpid(), os.getppid())]
    if name == "deepspeed":
        links.append((os.getppid(), parent_of(os.getppid())))
    return links


def _watch(links: list[tuple[int, int | None]], readable: int, grace_s: float) -> None:
    while not _signal_came(readable):
        if any(parent_of(pid) != parent for pid, parent in links):
            os.kill(os.getpid(), signal.SIGTERM)
            break
    time.sleep(grace_s)
    write_exit_code(os.environ, EXIT_RESUMABLE)
    os._exit(EXIT_RESUMABLE)


def _signal_came(readable: int) -> bool:
    """Wait one poll for the C-level handler's byte: SIGINT or SIGTERM, other signals are not an end."""
    ready, _, _ = select.select([readable], [], [], _POLL_S)
    if not ready:
        return False
    return any(number in (signal.SIGINT, signal.SIGTERM) for number in os.read(readable, 64))

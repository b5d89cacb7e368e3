"""A rank ends with its starter: nothing keeps a card busy after the command that was typed is gone.

The kernel tells a child of its parent's death (prctl). DeepSpeed's `deepspeed` is the grandparent and
dies without a word to anybody, so watchdog.py looks at both. It also bounds how long a rank takes to
stop once a signal arrived, which may be for ever in a collective whose other half is gone, and how long
it may stand still where no `launcher run` watches.
"""

import ctypes
import faulthandler
import os
import signal
import sys
from pathlib import Path

from launcher import heartbeat
from launcher.facts import Starter
from launcher.process import watchdog
from launcher.process.exit_codes import EXIT_FILE_VARIABLE
from launcher.process.watchdog import parent_of

_PR_SET_PDEATHSIG = 1
_ROOT = Path(__file__).resolve().parents[2]
# -I and -S keep a person's own modules out; the package itself is found behind the standard library.
_START = (
    "import sys; sys.path.append(sys.argv[1]); from launcher.process.watchdog import main; main(sys.argv[2:])"
)
GRACE_S = 1.4  # with the polls of watchdog and starter, all is over within two seconds


def end_with_parent(starter: Starter, grace_s: float = GRACE_S) -> None:
    """Call first thing in a rank, from the main thread: begins its heartbeat, and has it watched.

    The starter's death arrives as SIGTERM; a rank that has not ended `grace_s` after a signal is killed,
    unless it asked for patience. A bare python start has no starter: only standing still ends it.
    """
    record = heartbeat.start(starter.rank, os.environ)
    faulthandler.register(signal.SIGUSR1)  # of a rank that hangs: where it stands, whatever holds its lock
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    _start_watchdog(starter, readable, record.descriptor, grace_s)
    os.close(readable)
    os.register_at_fork(after_in_child=lambda: _forget(writable))
    if starter.name != "python":
        ask_for_signal_on_parent_death()
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)


def ask_for_signal_on_parent_death(number: int = signal.SIGTERM) -> None:
    """Linux's PR_SET_PDEATHSIG for this process; survives exec. Elsewhere the watchdog is alone."""
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    except (OSError, AttributeError):  # not Linux: no prctl
        return


def _forget(writable: int) -> None:
    """In a forked data worker: its signals are not the rank's, and it must not keep the pipe open."""
    signal.set_wakeup_fd(-1)
    os.close(writable)


def _start_watchdog(starter: Starter, readable: int, record: int, grace_s: float) -> None:
    """In a process group of its own, holding nothing of this process but pipe, record and standard error."""
    is_watched = heartbeat.FOLDER_VARIABLE in os.environ
    hang_s = float("inf") if is_watched else heartbeat.timeout_s(os.environ)
    words = [os.getpid(), starter.rank, grace_s, hang_s, os.environ.get(EXIT_FILE_VARIABLE, "")]
    words += [f"{pid}:{parent_of(pid) or 0}" for pid in _starters(starter.name)]
    null = os.open(os.devnull, os.O_RDWR)
    given = ((readable, 0), (null, 1), (2, 2), (record, watchdog.RECORD_DESCRIPTOR))
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-c", _START, str(_ROOT), *map(str, words)],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in given],
        setpgroup=0,
        setsigmask=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),  # starters signal all that is below them
    )
    os.close(null)


def _starters(name: str) -> list[int]:
    """Whose parents are starters: this rank, and DeepSpeed's launch.py above it.

    The shell above is none: `nohup accelerate launch ... &` must outlive a logout.
    """
    if name == "python":
        return []
    return [os.getpid(), os.getppid()] if name == "deepspeed" else [os.getpid()]

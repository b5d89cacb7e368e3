"""A small process beside each rank that ends it when it cannot end itself. Standard library only.

A thread would not do: communication in native code can hold the interpreter's lock for ever once the
other rank is gone. Python's C-level signal handler writes to a pipe without that lock; this process
reads it. End of file means that the rank is gone, and then so is this process. It also looks at the rank's
heartbeat (descriptor 3): one that stands still for too long is told of and ended, where no `launcher run`
watches, and one that asked for patience is given it.

    main(["RANK_PID", "RANK", "GRACE_S", "HANG_S", "EXIT_FILE", "PID:PARENT", ...])    (pipe: standard input)
"""

import os
import select
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from launcher import heartbeat

POLL_S = 0.2
START_S = 600.0  # before the first step: imports, operators that are built, tokenisation
EXIT_RESUMABLE = 75
RECORD_DESCRIPTOR = 3


def parent_of(pid: int) -> int | None:
    """The parent's pid, or None where the process is gone (or there is no /proc)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[1])


@dataclass(frozen=True, kw_only=True)
class Watched:
    """The rank's process and number, seconds that it may take to end and to stand still, its starters."""

    pid: int
    rank: int
    grace_s: float
    hang_s: float
    exit_file: str
    links: list[tuple[int, int | None]]


def watch(rank: Watched) -> None:
    """Pass a starter's death on as SIGTERM; kill the rank `grace_s` after any end was asked of it."""
    while not _end_was_asked(POLL_S):
        if any(parent_of(pid) != parent for pid, parent in rank.links):
            _send(rank.pid, signal.SIGTERM)
            break
        if words := _hang(rank):
            print(words, file=sys.stderr, flush=True)
            _send(rank.pid, signal.SIGUSR1)  # its stack, where a handler was set
            _send(rank.pid, signal.SIGTERM)
            break
    _give_time(time.monotonic() + rank.grace_s)
    if rank.exit_file and not Path(rank.exit_file).exists():
        Path(rank.exit_file).write_text(f'{{"exit_code": {EXIT_RESUMABLE}}}')
    _send(rank.pid, signal.SIGKILL)


def _give_time(deadline: float) -> None:
    """Wait until then, or as long as the rank says that it is saving. Leaves when the rank is gone."""
    while (left_s := max(deadline, _patience_s()) - time.monotonic()) > 0:
        _end_was_asked(min(left_s, POLL_S))


def _patience_s() -> float:
    beat = heartbeat.read(RECORD_DESCRIPTOR)
    return beat.patience_s if beat else 0.0


def _hang(rank: Watched) -> str:
    """What to say of a rank that stands still for too long; empty for one that moves."""
    beat = heartbeat.read(RECORD_DESCRIPTOR)
    least_s = START_S if beat is None or beat.step < 0 else 0.0
    if beat is None or (stood_s := time.monotonic() - beat.since_s) < max(rank.hang_s, least_s):
        return ""
    return (
        f"rank {rank.rank} has stood in {beat.place()} for {stood_s:.0f} s: it is ended. "
        f"--resume continues from the last whole checkpoint; {heartbeat.TIMEOUT_VARIABLE}=N waits N seconds"
    )


def _end_was_asked(wait_s: float) -> bool:
    """Wait for a byte: the number of a signal that the rank got. Leaves when the rank is gone."""
    ready, _, _ = select.select([0], [], [], wait_s)
    if not ready:
        return False
    numbers = os.read(0, 64)
    if not numbers:
        os._exit(0)
    return any(number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) for number in numbers)


def _send(rank: int, number: int) -> None:
    if os.getppid() == rank:  # else it is gone, and its number may be another's
        os.kill(rank, number)


def main(words: list[str]) -> None:
    """Read the command line. The signals that starters send to everything below them come blocked."""
    pid, rank, grace_s, hang_s, exit_file, *chain = words
    links = [(int(each), int(parent) or None) for each, parent in (link.split(":") for link in chain)]
    watch(
        Watched(
            pid=int(pid),
            rank=int(rank),
            grace_s=float(grace_s),
            hang_s=float(hang_s),
            exit_file=exit_file,
            links=links,
        )
    )

"""A small process beside each rank that ends it when it cannot end itself. Standard library only.

A thread would not do: communication in native code can hold the interpreter's lock for ever once the
other rank is gone. Python's C-level signal handler writes to a pipe without that lock; this process
reads it. End of file means that the rank is gone, and then so is this process.

    python -I -S watchdog.py RANK_PID GRACE_S EXIT_FILE PID:PARENT ...    (the pipe is standard input)
"""

import os
import select
import signal
import sys
import time
from pathlib import Path

POLL_S = 0.2
EXIT_RESUMABLE = 75


def parent_of(pid: int) -> int | None:
    """The parent's pid, or None where the process is gone (or there is no /proc)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[1])


def watch(rank: int, grace_s: float, exit_file: str, links: list[tuple[int, int | None]]) -> None:
    """Pass a starter's death on as SIGTERM; kill the rank `grace_s` after any end was asked of it."""
    while not (asked := _end_was_asked(POLL_S)):
        if any(parent_of(pid) != parent for pid, parent in links):
            _send(rank, signal.SIGTERM)
            asked = True
            break
    deadline = time.monotonic() + grace_s
    while asked and (left_s := deadline - time.monotonic()) > 0:
        _end_was_asked(left_s)
    if exit_file and not Path(exit_file).exists():
        Path(exit_file).write_text(f'{{"exit_code": {EXIT_RESUMABLE}}}')
    _send(rank, signal.SIGKILL)


def _end_was_asked(wait_s: float) -> bool:
    """Wait for a byte: the number of a signal that the rank got. Leaves when the rank is gone."""
    ready, _, _ = select.select([0], [], [], wait_s)
    if not ready:
        return False
    numbers = os.read(0, 64)
    if not numbers:
        os._exit(0)
    return any(number in (signal.SIGINT, signal.SIGTERM) for number in numbers)


def _send(rank: int, number: int) -> None:
    if os.getppid() == rank:  # else it is gone, and its number may be another's
        os.kill(rank, number)


def main(words: list[str]) -> None:
    """Read the command line. The signals that starters send to everything below them come blocked."""
    rank, grace_s, exit_file, *chain = words
    links = [(int(pid), int(parent) or None) for pid, parent in (link.split(":") for link in chain)]
    watch(int(rank), float(grace_s), exit_file, links)


if __name__ == "__main__":
    main(sys.argv[1:])

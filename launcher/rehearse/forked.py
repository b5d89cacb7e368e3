"""Ranks without a start of their own: copies of this process, which has imported everything already.

Importing torch, transformers and a backend takes a rank longer than its twelve tiny steps. Many rehearsals
after one another fork their ranks instead. What a starter does is not rehearsed that way: its variables
are set here as torchrun sets them.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from launcher.hardware.ports import free_port
from launcher.process.children import descendants, send
from launcher.rehearse.started import LIMIT_S, environment, hold

_POLL_S = 0.01
_GRACE_S = 3.0  # ranks that are left alone have this long to say why


def rank_variables(rank: int, num_ranks: int, port: int) -> dict[str, str]:
    """What torchrun gives one of several ranks; nothing for one process alone."""
    if num_ranks == 1:
        return {}
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none"}
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": num_ranks, "LOCAL_WORLD_SIZE": num_ranks}
    return where | {name: str(value) for name, value in place.items()}


class Forked:
    """Forked processes with the ways of `Started`; all that they say goes to one log."""

    def __init__(self, works: Sequence[Callable[[], int]], log: Path) -> None:
        """Fork one process for each piece of work; the exit code is what the work returns."""
        self.log, self.temporary = log, log.parent / "tmp"
        self.temporary.mkdir(exist_ok=True)
        log.write_bytes(b"")
        port = free_port()
        self.running: dict[int, int] = {}
        self.codes: list[int] = []
        for rank, work in enumerate(works):
            variables = rank_variables(rank, len(works), port)
            sys.stdout.flush()
            sys.stderr.flush()
            if (pid := os.fork()) == 0:
                _become(work, variables, log, self.temporary)
            self.running[pid] = rank

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill_ranks()
        self.wait()

    @property
    def text(self) -> str:
        """All that they have said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        """The first exit code that is not 0. Raises TimeoutError where it takes too long."""
        code = self.wait_until(lambda: False)
        assert code is not None
        return code

    def wait_until(self, holds: Callable[[], bool]) -> int | None:
        """None as soon as the condition holds, the exit code where all end before. Raises TimeoutError."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            self._collect()
            if not self.running:
                return next((code for code in self.codes if code), 0)
            if any(self.codes):
                self._end_the_others_after(time.monotonic() + _GRACE_S)
                return next(code for code in self.codes if code)
            if holds():
                return None
            time.sleep(_POLL_S)
        raise TimeoutError(f"no end after {LIMIT_S / 60:.0f} minutes")

    def _collect(self) -> None:
        for pid in list(self.running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.running[pid]
                self.codes.append(os.waitstatus_to_exitcode(status))

    def _end_the_others_after(self, deadline: float) -> None:
        """One rank failed: the others wait for it in a collective, and are ended."""
        while self.running and time.monotonic() < deadline:
            self._collect()
            time.sleep(_POLL_S)
        self.kill_ranks()
        for pid in list(self.running):
            os.waitpid(pid, 0)
            del self.running[pid]

    def hold_ranks(self) -> None:
        """Every rank stands still from here on."""
        hold(list(self.running))

    def let_ranks_go(self) -> None:
        """They go on where they were held."""
        send(list(self.running), signal.SIGCONT)

    def kill_ranks(self) -> list[int]:
        """SIGKILL to every rank that runs, and to its data workers."""
        ranks = list(self.running)
        for pid in ranks:
            send([pid, *descendants(pid)], signal.SIGKILL)
        return ranks


def _become(work: Callable[[], int], variables: dict[str, str], log: Path, temporary: Path) -> None:
    """In the fork: other variables, other output, no handler of the parent's; ends with the work's code."""
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        file = os.open(log, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout, sys.stderr = (os.fdopen(each, "w", buffering=1, closefd=False) for each in (1, 2))
        os.environ.update(environment(os.environ, temporary) | variables)
        tempfile.tempdir = None
        code = work()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 (a fork must never go on as its parent)
        with suppress(Exception):
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 1)

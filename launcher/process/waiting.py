"""Waiting for a starter and its ranks: signals passed on, hung and lost ranks noticed, a bounded end."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from launcher.process.children import descendants, send
from launcher.process.liveness import Finding, Liveness, patience_s, pids

STOP_S = 5.0
STACK_S = 0.5  # for a hung rank to write where it stands
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Waited:
    """The starter's exit code, and the rank that was found lost or hung, if any was."""

    code: int
    found: Finding | None = None


@contextmanager
def collected_signals() -> Iterator[list[int]]:
    """Collect the signals that end a run. One that is ignored (nohup) stays ignored."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    caught = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in caught}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Waiting:
    """One wait for one starter. A signal is passed on once; a second one, or waiting too long, kills."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        *,
        came: list[int],
        spared: frozenset[int],
        liveness: Liveness,
        num_ranks: int,
    ) -> None:
        """`came` grows as signals come; `num_ranks` is 0 where nobody knows."""
        self.child, self.came, self.spared = child, came, spared
        self.liveness, self.num_ranks = liveness, num_ranks
        self.forwarded, self.deadline = 0, float("inf")
        self.found: Finding | None = None

    def run(self) -> Waited:
        """Wait to the end."""
        while self.child.poll() is None:
            if len(self.came) > self.forwarded:
                self._pass_on()
            elif not self.came and self.deadline == float("inf"):
                self._look()
            if time.monotonic() > self._until():
                send(self._below(), signal.SIGKILL)
            time.sleep(_POLL_S)
        if not self.came and self.found is None:
            self.found = self.liveness.look()
        return Waited(code=self.child.returncode, found=self.found)

    def _pass_on(self) -> None:
        """To the ranks alone where all are known: some starters kill 30 s later what still saves."""
        is_second = self.forwarded > 0
        self.deadline = 0.0 if is_second else time.monotonic() + STOP_S
        self.forwarded = len(self.came)
        ranks = pids(self.liveness.folder)
        targets = ranks if self.num_ranks and len(ranks) >= self.num_ranks else self._below()
        send(targets, signal.SIGINT if self.came[-1] == signal.SIGINT else signal.SIGTERM)

    def _until(self) -> float:
        """When everything is killed: later where a rank that a person stopped says that it is still saving.

        Not for a hung or lost rank's sake: the others cannot save without it.
        """
        if not self.came or self.deadline in (0.0, float("inf")):
            return self.deadline
        return max(self.deadline, patience_s(self.liveness.folder) + STOP_S)

    def _look(self) -> None:
        """End the run for a rank that hangs, or that is lost without the starter's noticing."""
        found = self.liveness.look()
        self.found = self.found or found
        if found is None or not found.must_end:
            return
        self.found = found
        if found.pid and found.is_hung:
            send([found.pid], signal.SIGUSR1)
            time.sleep(STACK_S)
        self.deadline = time.monotonic() + STOP_S
        send(self._below(), signal.SIGTERM)

    def _below(self) -> list[int]:
        """The starter and all its ranks: not every starter hands on what it gets."""
        return [pid for pid in descendants(os.getpid()) if pid not in self.spared]

"""What native code and libraries write when communication, ports, workers or memory fail, and what it means.

Formats: torch 2.13 (c10d, NCCL's watchdog, gloo, DataLoader), DeepSpeed 0.19. Each says what a person can do.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from launcher.errors import Problem

_TIMED_OUT = (
    "every rank at the same collective within the time-out; the rank that is missing is the one to look at"
)


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """A pattern, what it means, what would be right, what to type. `is_peer`: another rank is the cause."""

    pattern: "re.Pattern[str]"
    what: str
    right: str
    type: str
    is_peer: bool = False
    is_worker: bool = False

    def problem(self, text: str) -> Problem:
        """The finding, with the library's own words behind it."""
        match = self.pattern.search(text)
        said = text[match.start() :] if match else ""
        if "Original Traceback" in said:  # a worker's own: its last line is the error
            said = said.strip().rpartition("\n")[2]
        return self.saying(said)

    def saying(self, said: str) -> Problem:
        """The finding, with the beginning of these words in brackets."""
        said = " ".join(said.split())[:160]
        return Problem(what=f"{self.what} ({said})" if said else self.what, right=self.right, type=self.type)


# Of workers first: what one of them says may hold the words of a broken connection too.
SYMPTOMS = (
    Symptom(
        pattern=re.compile(r"DataLoader worker .*(Bus error|out of shared memory)"),
        what="a data worker found /dev/shm full",
        right="more of it (Docker: --shm-size 8g), or no workers",
        type="data.dataloader_num_workers=0",
        is_worker=True,
    ),
    Symptom(
        pattern=re.compile(r"DataLoader worker .*(Killed|SIGKILL)"),
        what="a data worker was killed, most often for want of host memory",
        right="fewer workers, or a larger memory limit",
        type="data.dataloader_num_workers=0",
        is_worker=True,
    ),
    Symptom(
        pattern=re.compile(r"DataLoader (timed out|worker .*(exited|killed))|in DataLoader worker process"),
        what="a data worker failed",
        right="workers that start and hand over; without them the rank pads by itself",
        type="data.dataloader_num_workers=0",
        is_worker=True,
    ),
    Symptom(
        pattern=re.compile(r"EADDRINUSE|[Aa]ddress already in use"),
        what="the port where the ranks meet is in use already",
        right="a free port; `launcher run` finds one by itself",
        type="launcher run RECIPE   (accelerate: --main_process_port 0, others: --master_port N)",
    ),
    Symptom(
        pattern=re.compile(
            r"Watchdog caught collective operation timeout|[Tt]imed out waiting \d+ms for (recv|send)"
            r"|waiting for clients|Wait timeout|monitoredBarrier|Timed out after \d+ ?ms|waitForInput"
            r"|TCPStore.*(timed out|timeout)",
        ),
        what="the ranks waited for one another until their time-out",
        right=_TIMED_OUT,
        type="the same command with --resume",
        is_peer=True,
    ),
    Symptom(
        pattern=re.compile(
            r"[Cc]onnection (closed|reset) by (the )?(remote )?peer|Broken pipe.*gloo|gloo.*Broken pipe"
            r"|remote process (has )?(exited|failed)|Read error \[|Socket closed"
            r"|NCCL communicator was aborted|gloo/transport|DistBackendError|ncclRemoteError"
            r"|recvValue failed|sendBytes failed"
        ),
        what="another rank is gone in the middle of a collective",
        right="every rank alive; the rank that went first says why, above",
        type="the same command with --resume",
        is_peer=True,
    ),
)


def recognise(text: str, known: Sequence[Symptom] = SYMPTOMS) -> Symptom | None:
    """The first symptom that the text shows."""
    return next((symptom for symptom in known if symptom.pattern.search(text)), None)


@dataclass
class Symptoms:
    """Reads a stream as it passes; the first symptom that was seen is kept."""

    first: Symptom | None = None
    line: str = ""
    _tail: str = field(default="", repr=False)

    def feed(self, text: str) -> None:
        """More of the stream."""
        if self.first is not None:
            return
        *lines, self._tail = (self._tail + text).rsplit("\n", 1)
        self._tail = self._tail[-4096:]
        for line in "".join(lines).split("\n"):
            if self.first is None and (found := recognise(line)) is not None:
                self.first, self.line = found, line

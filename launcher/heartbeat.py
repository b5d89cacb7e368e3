"""How far a rank is, written where others can see it: pid, step, phase, and since when.

Standard library only. One small record a rank, in memory that a file or a descriptor shares: a beat is one
copy of 64 bytes, no system call. Times are of the monotonic clock, which all processes of a machine share
and which nobody can set.
"""

import mmap
import os
import struct
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "LAUNCHER_HEARTBEAT"  # set by `launcher run`: where its ranks leave their records
TIMEOUT_VARIABLE = "LAUNCHER_HANG_TIMEOUT_S"
TIMEOUT_S = 1800.0
STARTING, DONE = "starting", "done"
_RECORD = struct.Struct("<qqdd32s")  # pid, step (-1: none yet), since, silent until, phase
_PREFIX = "rank-"


@dataclass(frozen=True, kw_only=True)
class Beat:
    """What a rank last said. `since_s` and `patience_s` are times of the monotonic clock.

    `patience_s`: until then a rank that was asked to stop is still at work, such as saving.
    """

    rank: int
    pid: int
    step: int
    phase: str
    since_s: float
    patience_s: float = 0.0

    def place(self) -> str:
        """Where the rank stands, in words."""
        return f"'{self.phase}'" + (f" (step {self.step})" if self.step >= 0 else "")


class Record:
    """This rank's record; only the process that made it writes."""

    def __init__(self, descriptor: int) -> None:
        """Share `descriptor`, an open file of any length."""
        os.ftruncate(descriptor, _RECORD.size)
        self.descriptor = descriptor
        self.memory = mmap.mmap(descriptor, _RECORD.size)
        self.pid = os.getpid()
        self.step, self.patience_s, self.phase = -1, 0.0, b""

    def write(self, phase: str, step: int | None) -> None:
        """Note the phase as begun now."""
        if os.getpid() != self.pid:  # a forked data worker is not the rank
            return
        self.step = self.step if step is None else step
        self.phase = phase.encode()[:32]
        self._put()

    def be_patient(self, seconds: float) -> None:
        """Ask for so long before an end is forced."""
        self.patience_s = time.monotonic() + seconds
        self._put()

    def _put(self) -> None:
        """At once: packing in place clears the record first, and a reader may come in between."""
        now = time.monotonic()
        self.memory[:] = _RECORD.pack(self.pid, self.step, now, self.patience_s, self.phase)


_mine: list[Record] = []


def start(rank: int, environ: Mapping[str, str]) -> Record:
    """Begin this rank's record: a file in the folder of `launcher run`, else memory that has no name."""
    folder = environ.get(FOLDER_VARIABLE, "")
    named = bool(folder) and Path(folder).is_dir()
    descriptor = _named(Path(folder) / f"{_PREFIX}{rank}") if named else _nameless()
    _mine[:] = [Record(descriptor)]
    beat(STARTING)
    return _mine[0]


def _named(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _nameless() -> int:
    if hasattr(os, "memfd_create"):  # Linux
        return os.memfd_create("launcher-heartbeat")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def beat(phase: str, step: int | None = None) -> None:
    """This rank is alive and begins `phase` (of `step`, where given). Without a record nothing happens."""
    if _mine:
        _mine[0].write(phase, step)


def again() -> None:
    """This rank is alive in the same phase: for loops that take long in one."""
    if _mine:
        _mine[0].write(_mine[0].phase.decode(errors="replace"), None)


def be_patient(seconds: float) -> None:
    """Call from a signal's handler where the rank will save first: nobody kills it for so long."""
    if _mine:
        _mine[0].be_patient(seconds)


def timeout_s(environ: Mapping[str, str]) -> float:
    """After how long without a beat a rank counts as hung, in seconds; infinite for 0 or less."""
    try:
        asked = float(environ.get(TIMEOUT_VARIABLE) or TIMEOUT_S)
    except ValueError:
        asked = TIMEOUT_S
    return asked if asked > 0 else float("inf")


def read(source: Path | int, rank: int = 0) -> Beat | None:
    """The record of a file or an open descriptor; None where nothing was written yet."""
    try:
        data = os.pread(source, _RECORD.size, 0) if isinstance(source, int) else source.read_bytes()
    except OSError:
        return None
    if len(data) < _RECORD.size:
        return None
    pid, step, since_s, patience_s, phase = _RECORD.unpack_from(data)
    if not pid:
        return None
    words = phase.rstrip(b"\0").decode(errors="replace")
    return Beat(rank=rank, pid=pid, step=step, phase=words, since_s=since_s, patience_s=patience_s)


def read_all(folder: Path) -> list[Beat]:
    """Every rank's record in the folder of `launcher run`, in the order of ranks."""
    names = [path for path in folder.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdigit()]
    found = [read(path, int(path.name.removeprefix(_PREFIX))) for path in names]
    return sorted((each for each in found if each is not None), key=lambda each: each.rank)

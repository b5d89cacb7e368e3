"""The real command as a process of its own: started, followed, its ranks killed from outside, ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from launcher.process.children import descendants, send, state
from launcher.process.config_files import PACKAGE
from launcher.process.orphan import ask_for_signal_on_parent_death

LIMIT_S = 1800.0
_STOP_S = 8.0
_POLL_S = 0.005
_RUN_FILE = f"{PACKAGE.name}/run.py"


class Started:
    """`launcher WORDS` without GPUs and without a network; everything it says goes to `log`."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        """Start it; leaving the `with` block leaves nothing of it behind."""
        self.log, self.temporary = log, log.parent / "tmp"
        self.temporary.mkdir(exist_ok=True)
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                env=environment(os.environ, self.temporary),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=ask_for_signal_on_parent_death,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def text(self) -> str:
        """All that it has said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait(self) -> int:
        """Its exit code. Raises TimeoutError where it takes longer than any rehearsal should."""
        ended_itself = self.wait_until(lambda: False)
        assert ended_itself is not None
        return ended_itself

    def wait_until(self, holds: Callable[[], bool]) -> int | None:
        """None as soon as the condition holds, its exit code where it ends before. Raises TimeoutError."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if (code := self.process.poll()) is not None:
                return code
            if holds():
                return None
            time.sleep(_POLL_S)
        raise TimeoutError(f"no end after {LIMIT_S / 60:.0f} minutes")

    def hold_ranks(self) -> None:
        """Every rank stands still from here on."""
        hold(self._ranks())

    def let_ranks_go(self) -> None:
        """They go on where they were held."""
        send(self._ranks(), signal.SIGCONT)

    def kill_ranks(self) -> list[int]:
        """SIGKILL to every rank at once; the starter and the command are left to notice."""
        ranks = self._ranks()
        send(ranks, signal.SIGKILL)
        return ranks

    def _ranks(self) -> list[int]:
        return [pid for pid in descendants(self.process.pid) if is_rank(pid)]

    def end(self) -> None:
        """Ask it to stop; kill whatever is left of it, wherever it hangs in the tree of processes."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_S)
        send(_with_temporary(self.temporary), signal.SIGKILL)
        self.process.wait()


def hold(pids: Sequence[int]) -> None:
    """SIGSTOP; returns once the kernel says that all stand: a call under way comes to its end first."""
    send(pids, signal.SIGSTOP)
    while any(state(pid) not in ("T", "t", "Z", "X", "") for pid in pids):
        time.sleep(_POLL_S)


def _with_temporary(folder: Path) -> list[int]:
    """Every process that was started with this folder, or one in it, for its temporary files."""
    marks = [f"\0TMPDIR={folder}{end}".encode() for end in ("\0", "/")]
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            variables = b"\0" + (entry / "environ").read_bytes()
        except OSError:  # it has ended meanwhile, or is another user's
            continue
        if any(mark in variables for mark in marks):
            found.append(int(entry.name))
    return found


def command(words: Sequence[str]) -> list[str]:
    """The `launcher` command behind this Python."""
    return ["-m", PACKAGE.name, *words]


def environment(inherited: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """The inherited variables with every card and the hub out of sight.

    Killed ranks and starters leave their temporary files in `temporary`, which goes with the rehearsal.
    """
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), inherited.get("PYTHONPATH", "")]))
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return {**inherited, **hidden, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "TMPDIR": str(temporary)}


def is_rank(pid: int) -> bool:
    """Whether the process is Python running run.py itself, not a starter that names it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it has ended meanwhile
        return False
    program = next((word for word in words[1:] if not word.startswith("-")), "")
    return program.endswith(_RUN_FILE) and "-m" not in words[1 : words.index(program)]

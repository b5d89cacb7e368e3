"""Start a run's starter, pass its output on, forward signals, and leave no process behind.

The starter is a session of its own: a signal reaches it once, through here. Whatever it leaves
behind when it ends is waited for briefly, then killed.
"""

import codecs
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

from launcher.errors import EXIT_FAILED
from launcher.process.children import adopt_orphans, descendants, end_all, send
from launcher.process.command import Command
from launcher.process.exit_codes import EXIT_FILE_VARIABLE, in_words, read_exit_code
from launcher.process.noise import Noise
from launcher.process.orphan import ask_for_signal_on_parent_death

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 0.1
STOP_S = 5.0
LINGER_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: its exit code, what it means, and processes that had to be killed."""

    exit_code: int
    words: str
    killed: tuple[int, ...] = ()


def supervise(
    command: Command,
    environ: Mapping[str, str],
    *,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> Outcome:
    """Run the command to its end. Call from the main thread: it installs signal handlers."""
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="launcher-") as folder:
        exit_file = Path(folder) / "exit.json"
        variables = {**environ, **command.environment, EXIT_FILE_VARIABLE: str(exit_file)}
        # without it Python ranks would hold lines back, as stdout is not a terminal to them
        variables["PYTHONUNBUFFERED"] = "1"
        with _signals() as came:
            code, noises = _run(command, variables, came, (stdout or sys.stdout, stderr or sys.stderr))
            killed = end_all(LINGER_S)
        return _outcome(code, read_exit_code(exit_file), noises, came, killed)


def _run(
    command: Command, variables: Mapping[str, str], came: list[int], streams: tuple[TextIO, TextIO]
) -> tuple[int, list[Noise]]:
    pipes = [_pipe(stream) for stream in streams]
    child = subprocess.Popen(
        command.argv,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=pipes[0][1],
        stderr=pipes[1][1],
        start_new_session=True,
        preexec_fn=ask_for_signal_on_parent_death,
    )
    noises = [Noise(), Noise()]
    readers = [
        threading.Thread(target=_pass_on, args=(pipe[0], stream, noise), daemon=True)
        for pipe, stream, noise in zip(pipes, streams, noises, strict=True)
    ]
    for pipe, reader in zip(pipes, readers, strict=True):
        os.close(pipe[1])
        reader.start()
    code = _wait(child, came)
    end_all(LINGER_S)  # whoever still holds the pipes would keep the readers waiting
    for reader in readers:
        reader.join(timeout=LINGER_S)
    return code, noises


def _pipe(stream: TextIO) -> tuple[int, int]:
    """A pipe, or a terminal where ours is one: progress bars look where they write."""
    if not stream.isatty():
        return os.pipe()
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # or the line discipline would add carriage returns
    return ours, theirs


def _pass_on(descriptor: int, stream: TextIO, noise: Noise) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for chunk in _chunks(descriptor):
        _show(stream, noise.feed(decoder.decode(chunk)))
    _show(stream, noise.rest())


def _chunks(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # a terminal whose other end is closed says so this way
            chunk = b""
        if not chunk:
            os.close(descriptor)
            return
        yield chunk


def _show(stream: TextIO, text: str) -> None:
    if text:
        stream.write(text)
        stream.flush()


@contextmanager
def _signals() -> Iterator[list[int]]:
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


def _wait(child: "subprocess.Popen[bytes]", came: list[int]) -> int:
    """The starter's exit code. A signal is passed on once; a second one, or waiting too long, kills."""
    forwarded, deadline = 0, float("inf")
    while child.poll() is None:
        if len(came) > forwarded:
            deadline = time.monotonic() + STOP_S if not forwarded else 0.0
            forwarded = len(came)
            _forward(child.pid, came[-1])
        if time.monotonic() > deadline:
            send(descendants(os.getpid()), signal.SIGKILL)
        time.sleep(_POLL_S)
    return child.returncode


def _forward(pid: int, number: int) -> None:
    """To the starter and all below it: not every starter hands on what it gets."""
    send([pid, *descendants(pid)], signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)


def _outcome(
    code: int, written: int | None, noises: list[Noise], came: list[int], killed: list[int]
) -> Outcome:
    """The rank's own word first, then what the starter said of it, then the starter's exit code."""
    named = next((noise.code for noise in reversed(noises) if noise.code is not None), None)
    if came and written is None:
        code = 128 + came[0]
    elif written is not None and code:
        code = written
    cause = named if named is not None and named < 0 and not came else code
    exit_code = code if code >= 0 else EXIT_FAILED
    return Outcome(exit_code=exit_code, words=in_words(cause), killed=tuple(killed))

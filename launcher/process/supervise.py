"""Start a run's starter, pass its output on, forward signals, and leave no process behind.

The starter is a session of its own: a signal reaches it once, through here. Whatever it leaves
behind when it ends is waited for briefly, then killed; its temporary files lie in a folder that goes too
(torchrun never removes the one that it makes for logs).
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
from launcher.process.children import adopting_orphans, descendants, end_all, send
from launcher.process.command import Command
from launcher.process.exit_codes import EXIT_FILE_VARIABLE, OWN_CODES, in_words, read_exit_code
from launcher.process.noise import Noise
from launcher.process.orphan import ask_for_signal_on_parent_death

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_S = 0.1
STOP_S = 5.0
LINGER_S = 3.0
_SOCKET_PATH_BYTES = 107  # sun_path of unix(7), without its closing zero


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: its exit code, what it means, and processes that had to be killed."""

    exit_code: int
    words: str
    killed: tuple[int, ...] = ()


def short_place(usual: str) -> str:
    """Where the run's temporary folder goes: /tmp instead of a place so deep that sockets would not fit.

    Data workers hand tensors over through multiprocessing's sockets below it. With a path that is too long a
    worker fails and the run waits for it for ever (torch 2.13).
    """
    longest = len(os.fsencode(usual)) + len("/launcher-12345678/pymp-12345678/listener-12345678")
    return "/tmp" if longest > _SOCKET_PATH_BYTES and os.access("/tmp", os.W_OK) else usual


def supervise(
    command: Command,
    environ: Mapping[str, str],
    *,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> Outcome:
    """Run the command to its end. Call from the main thread: it installs signal handlers."""
    place = short_place(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(prefix="launcher-", dir=place) as folder, adopting_orphans() as spared:
        exit_file = Path(folder) / "exit.json"
        variables = {**environ, **command.environment, EXIT_FILE_VARIABLE: str(exit_file), "TMPDIR": folder}
        with _signals() as came:
            ended = _run(command, variables, came, (stdout or sys.stdout, stderr or sys.stderr), spared)
        return _outcome(ended, read_exit_code(exit_file), came)


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """The starter's exit code, the code of a rank that it named, and what had to be killed."""

    code: int
    named: int | None
    killed: tuple[int, ...]


def _run(
    command: Command,
    variables: Mapping[str, str],
    came: list[int],
    streams: tuple[TextIO, TextIO],
    spared: frozenset[int],
) -> _Ended:
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
    code = _wait(child, came, spared)
    killed = end_all(LINGER_S, spared)  # whoever still holds the pipes would keep the readers waiting
    for reader in readers:
        reader.join(timeout=LINGER_S)
    named = next((noise.code for noise in reversed(noises) if noise.code is not None), None)
    return _Ended(code=code, named=named, killed=tuple(killed))


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


def _wait(child: "subprocess.Popen[bytes]", came: list[int], spared: frozenset[int]) -> int:
    """The starter's exit code. A signal is passed on once; a second one, or waiting too long, kills."""
    forwarded, deadline = 0, float("inf")
    while child.poll() is None:
        if len(came) > forwarded:
            deadline = time.monotonic() + STOP_S if not forwarded else 0.0
            forwarded = len(came)
            _forward(_below(spared), came[-1])
        if time.monotonic() > deadline:
            send(_below(spared), signal.SIGKILL)
        time.sleep(_POLL_S)
    return child.returncode


def _below(spared: frozenset[int]) -> list[int]:
    """The starter and all its ranks: not every starter hands on what it gets."""
    return [pid for pid in descendants(os.getpid()) if pid not in spared]


def _forward(pids: list[int], number: int) -> None:
    send(pids, signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)


def _outcome(ended: _Ended, written: int | None, came: list[int]) -> Outcome:
    """The rank's own word first, then what the starter said of it, then the starter's exit code."""
    code = ended.code
    if came and written is None:
        code = 128 + came[0]
    elif written is not None and code:
        code = written
    cause = ended.named if ended.named is not None and ended.named < 0 and not came else code
    exit_code = code if code in OWN_CODES or came else EXIT_FAILED
    return Outcome(exit_code=exit_code, words=in_words(cause), killed=ended.killed)

"""Runs of one process in forks of this one: a life of a rank in a second, which may be killed anywhere.

`killed_at(k)` kills -9 right before the k-th change in the run's folder (a file opened for writing, renamed,
removed, a folder made), so every point between two such changes can be visited.
"""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

_CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Ended:
    """How a fork ended: exit code (negative: the signal) and what it said."""

    def __init__(self, code: int, said: str) -> None:
        self.code, self.said = code, said


def run(words: Sequence[str], log: Path, before: Callable[[], None] = lambda: None) -> Ended:
    """`run.py` with these words, in a fork; `before` is called in it first."""
    torch.set_num_threads(1)  # before the fork: a pool of threads would not survive it
    child = os.fork()
    if child == 0:
        _live(words, log, before)
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), log.read_text() if log.exists() else "")


def _live(words: Sequence[str], log: Path, before: Callable[[], None]) -> None:
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores both
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        from launcher.errors import LauncherError
        from launcher.process.arguments import parse
        from launcher.process.starter import read_starter
        from launcher.train.rank import run_rank

        before()
        arguments = parse(words)
        try:
            code = run_rank(arguments, read_starter(os.environ, arguments))
        except LauncherError as error:
            print(error, file=sys.stderr)
            code = error.exit_code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def counted(folder: Path, into: Path) -> Callable[[], None]:
    """Write the number of changes in `folder` to the file `into` when the fork ends."""

    def start() -> None:
        into.write_text("0")
        descriptor = os.open(into, os.O_WRONLY)
        count = 0

        def count_it() -> None:
            nonlocal count
            count += 1
            os.pwrite(descriptor, str(count).encode(), 0)

        _at_changes(folder, count_it)

    return start


def killed_at(folder: Path, number: int) -> Callable[[], None]:
    """Kill -9 right before the change of that number in `folder`."""

    return _at_change(folder, number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def ended_after(folder: Path, number: int, after_s: float) -> Callable[[], None]:
    """End it so long after the change of that number in `folder`, in whatever it is at: by SIGALRM."""

    # Nobody handles the signal: it ends the process.
    return _at_change(folder, number, lambda: signal.setitimer(signal.ITIMER_REAL, after_s))


def _at_change(folder: Path, number: int, act: Callable[[], object]) -> Callable[[], None]:
    """Act right before the change of that number in `folder`."""

    def start() -> None:
        left = number

        def count_down() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                act()

        _at_changes(folder, count_down)

    return start


def _at_changes(folder: Path, act: Callable[[], None]) -> None:
    start = str(folder)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            changes = isinstance(flags, int) and bool(flags & _WRITING)
            changes |= isinstance(mode, str) and any(letter in mode for letter in "wax+")
        elif event in _CHANGES:
            path, changes = arguments[0], True
        else:
            return
        if changes and os.fspath(path).startswith(start) if isinstance(path, str | os.PathLike) else False:
            act()

    sys.addaudithook(hook)

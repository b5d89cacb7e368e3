"""What a run writes is passed on; its terminal is as wide as the person's, also after a change."""

import os
import pty
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from launcher.process.passing import Passing


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    """A person's terminal: its own end, and the stream that is written to."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield ours, stream
    os.close(ours)


def test_a_runs_terminal_follows_the_width_of_the_persons(terminal: tuple[int, TextIO]) -> None:
    ours, stream = terminal
    termios.tcsetwinsize(ours, (24, 57))
    passing = Passing(stream, {})
    child = os.dup(passing.theirs)
    assert termios.tcgetwinsize(child) == (24, 57)
    passing.start()
    termios.tcsetwinsize(ours, (30, 133))
    os.write(child, b"half a bar")
    shown = b""
    while len(shown) < len(b"half a bar"):  # it may come in pieces
        shown += os.read(ours, 100)
    assert shown == b"half a bar"
    assert termios.tcgetwinsize(child) == (30, 133)
    os.close(child)
    passing.finish(600)


def test_a_run_into_a_file_gets_no_terminal() -> None:
    with Path(os.devnull).open("w") as stream:
        passing = Passing(stream, {})
        assert not os.isatty(passing.theirs)
        passing.start()
        passing.finish(600)

"""The output of a run passed on as it comes: without starters' noise and secrets, read for symptoms."""

import codecs
import os
import pty
import termios
import threading
import tty
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TextIO

from launcher.process.noise import Noise
from launcher.process.symptoms import Symptoms
from launcher.redact import Stream


class Passing:
    """One stream of the child on its way to one of ours; `theirs` is the end that the child writes to."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        """A pipe, or a terminal of the same size where ours is one: progress bars look where they write."""
        self.stream = stream
        self.size = (0, 0)
        self.ours, self.theirs = _pair(stream)
        self._take_size()
        self.noise, self.symptoms, self.secrets = Noise(), Symptoms(), Stream(environ)
        self.reader = threading.Thread(target=self._pass_on, daemon=True)

    def start(self) -> None:
        """Begin, once the child has its end."""
        os.close(self.theirs)
        self.reader.start()

    def finish(self, timeout_s: float) -> None:
        """Wait so long for what is still on its way."""
        self.reader.join(timeout=timeout_s)

    def _pass_on(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for chunk in _chunks(self.ours):
            self._take_size()
            text = decoder.decode(chunk)
            self.symptoms.feed(text)
            self._show(self.secrets.feed(self.noise.feed(text)))
        self._show(self.secrets.feed(self.noise.rest()) + self.secrets.rest())

    def _take_size(self) -> None:
        """Give the child's terminal the size of ours, also once that has changed.

        A bar that is drawn for a wider window breaks into lines.
        """
        if not os.isatty(self.ours):
            return
        with suppress(OSError, ValueError, termios.error):  # ours was closed: its last size stays
            size = termios.tcgetwinsize(self.stream.fileno())
            if size != self.size:
                termios.tcsetwinsize(self.ours, size)
                self.size = size

    def _show(self, text: str) -> None:
        if not text:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # the terminal was closed: the run goes on to save and end
            return


def _pair(stream: TextIO) -> tuple[int, int]:
    if not stream.isatty():
        return os.pipe()
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # or the line discipline would add carriage returns
    return ours, theirs


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

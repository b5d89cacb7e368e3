"""A file's decoded text: held where it is short, read again from the file where it is long."""

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import BinaryIO

HELD_BYTES = 2**21
_BUFFER_BYTES = 2**20


class Text(ABC):
    """Characters that can be read line by line, any number of times."""

    notices: tuple[str, ...] = ()

    @abstractmethod
    def lines(self, newline: str | None) -> Iterator[str]:
        r"""Lines with their ends; `newline` as open() has it: "" keeps \r\n, "\n" splits only there."""

    @abstractmethod
    def pieces(self) -> Iterator[str]:
        """All of it in pieces of any length."""

    @abstractmethod
    def whole(self) -> str:
        """All of it in memory."""

    def first_line(self) -> str:
        r"""The first line that is more than its end, without it; \n, \r\n and \r end a line."""
        ends = (line.strip("\n") for line in self.lines(None))
        return next((line for line in ends if line), "")


class Held(Text):
    """Text in memory."""

    def __init__(self, text: str, notices: tuple[str, ...] = ()) -> None:
        """`notices`: what to say of its encoding."""
        self.text, self.notices = text, notices

    def lines(self, newline: str | None) -> Iterator[str]:
        """Lines with their ends."""
        return iter(io.StringIO(self.text, newline=newline))

    def pieces(self) -> Iterator[str]:
        """One piece."""
        yield self.text

    def whole(self) -> str:
        """The text."""
        return self.text


class Filed(Text):
    """Text that stays in its file."""

    def __init__(self, open_bytes: Callable[[], BinaryIO], encoding: str, notices: tuple[str, ...]) -> None:
        """`open_bytes` gives the unpacked bytes from the start; they were found to fit `encoding`."""
        self.open_bytes, self.encoding, self.notices = open_bytes, encoding, notices

    def lines(self, newline: str | None) -> Iterator[str]:
        """Lines with their ends."""
        with io.TextIOWrapper(self.open_bytes(), encoding=self.encoding, newline=newline) as opened:
            yield from opened

    def pieces(self) -> Iterator[str]:
        """All of it in pieces of a mebibyte."""
        with io.TextIOWrapper(self.open_bytes(), encoding=self.encoding, newline="") as opened:
            yield from iter(lambda: opened.read(_BUFFER_BYTES), "")

    def whole(self) -> str:
        """All of it in memory."""
        with io.TextIOWrapper(self.open_bytes(), encoding=self.encoding, newline="") as opened:
            return opened.read()


class Chunks(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        """What `pieces` raises comes out where they are read."""
        self.pieces, self.rest = pieces, b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        """As io has it."""
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = piece
        number = min(len(buffer), len(self.rest))
        buffer[:number] = self.rest[:number]
        self.rest = self.rest[number:]
        return number


def as_file(pieces: Iterator[bytes]) -> BinaryIO:
    """The pieces with a buffer."""
    return io.BufferedReader(Chunks(pieces), _BUFFER_BYTES)

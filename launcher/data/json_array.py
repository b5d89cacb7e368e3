"""An array of records in JSON, one record after another: as much of it in memory as a record takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.data.findings import Findings, excerpt
from launcher.data.json_records import DECODER, Keep, NotJson, skip, unreadable
from launcher.data.text import Text
from launcher.errors import Problem

_SHOWN = 200


class _Window:
    """The part of a text that is looked at: `place` in `buffer` is where reading stands, on line `line`."""

    def __init__(self, text: Text) -> None:
        self.pieces: Iterator[str] = text.pieces()
        self.buffer, self.place, self.line = "", 0, 1

    def more(self) -> bool:
        """Read on, at least as much as is not used yet; False at the end of the text."""
        kept = self.buffer[self.place :]
        parts, wanted, got = [kept], max(1, len(kept)), 0
        while got < wanted and (piece := next(self.pieces, None)):
            parts.append(piece)
            got += len(piece)
        if got:
            self.buffer, self.place = "".join(parts), 0
        return got > 0

    def go(self, to: int) -> None:
        """Stand at a later place."""
        self.line += self.buffer.count("\n", self.place, to)
        self.place = to

    def skipped(self, behind: int) -> int:
        """How far from here the first character is that is no white space, `behind` or more."""
        while True:
            found = skip(self.buffer, self.place + behind)
            if found < len(self.buffer) or not self.more():
                return found - self.place

    def character(self, offset: int) -> str:
        """What stands there; empty at the end."""
        return self.buffer[self.place + offset : self.place + offset + 1]

    def shown(self, offset: int, number: int) -> str:
        """So many characters from there on, if there are as many."""
        while len(self.buffer) < self.place + offset + number and self.more():
            pass
        return self.buffer[self.place + offset : self.place + offset + number]

    def decode(self) -> tuple[Any, int]:
        """The value that begins here, and its characters."""
        while True:
            try:
                value, end = DECODER.raw_decode(self.buffer, self.place)
            except (NotJson, RecursionError):
                raise
            except ValueError:
                if not self.more():
                    raise
            else:
                if end < len(self.buffer) or not self.more():
                    return value, end - self.place


def read_array(text: Text, path: Path, findings: Findings, keep: Keep) -> None:
    """Every record to `keep`. A mistake is told with its own record and line, and ends the reading."""
    window, number = _Window(text), 0
    window.go(window.place + window.skipped(0))
    window.go(window.place + window.skipped(1))
    while window.character(0) != "]":
        number += 1
        try:
            record, size = window.decode()
            keep(record, window.line, number, size)
            step = _behind_record(window, size)
        except (ValueError, RecursionError) as error:
            content = window.shown(0, _SHOWN)
            found = unreadable(error, path, window.line, number, content, start=_start(error, window))
            findings.add(found)
            return
        window.go(window.place + step)
    rest = window.skipped(1)
    if window.character(rest):
        window.go(window.place + rest)
        findings.add(_behind_array(path, window.line, window.shown(0, _SHOWN).rstrip()))


def _start(error: Exception, window: _Window) -> int:
    """Where the record begins in the text that the decoder was given."""
    doc = getattr(error, "doc", "")
    return window.place if doc is window.buffer else 0


def _behind_record(window: _Window, size: int) -> int:
    """How far the next record is, or the closing bracket."""
    offset = window.skipped(size)
    sign = window.character(offset)
    if sign == ",":
        after = window.skipped(offset + 1)
        if window.character(after) == "]":
            raise NotJson("a comma stands behind the last record")
        return after
    if sign == "]":
        return offset
    if not sign:
        raise NotJson("the file ends before the array is closed with ]")
    shown = excerpt(window.shown(offset, 40))
    raise NotJson(f"a comma or ] is missing behind the record, in front of: {shown}")


def _behind_array(path: Path, line: int, rest: str) -> Problem:
    kind = "a second array" if rest.startswith("[") else "something"
    return Problem(
        where=f"{path}:{line}",
        what=f"{kind} stands behind the array: {excerpt(rest)}",
        right="one array in the file",
        type="join the arrays, or write one object a line",
    )

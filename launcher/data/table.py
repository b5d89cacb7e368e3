"""A file's rows under its column names, each with the line that it starts on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.data.progress import report
from launcher.data.spool import BLOCK_ROWS, BLOCK_SIZE, SpoolWriter, blocks_of, mapped

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """`rows` map column to value: text from csv, any JSON value from json. `lines` count from 1.

    `is_prose`: the rows are the lines of a text, so that a blank one has a meaning. `files`: the file of
    each row, where `path` is a folder or a pattern. `counts_records`: `lines` are record numbers.
    `before`: records of the same data that stand in front of these, where they are a part of a table.

    Many rows lie in a file, of which one block at a time is in memory: go through them in order.
    """

    columns: tuple[str, ...]
    rows: Sequence[Row]
    lines: Sequence[int]
    path: Path
    notices: tuple[str, ...] = ()
    is_prose: bool = False
    files: Sequence[Path] | None = None
    counts_records: bool = False
    before: int = 0

    def file(self, row: int) -> Path:
        """The file that a row came from."""
        return self.path if self.files is None else self.files[row]

    def where(self, row: int) -> str:
        """`file:line` of a row, or `file#record` where a file has no lines."""
        return f"{self.file(row)}{'#' if self.counts_records else ':'}{self.lines[row]}"

    def said(self, *notices: str) -> "Table":
        """The same with more to say."""
        return replace(self, notices=(*self.notices, *notices))

    def with_column(self, name: str, value: Callable[[int], Any]) -> "Table":
        """The same rows with one more column; `value` gets the row's number."""
        rows = mapped(self.rows, lambda number, row: {**row, name: value(number)})
        columns = self.columns if name in self.columns else (*self.columns, name)
        return replace(self, columns=columns, rows=rows)

    def record(self, row: int) -> int:
        """A row's number in the data, from 1."""
        return self.before + row + 1

    def blocks(self) -> Iterator["Table"]:
        """The rows in tables of about a thousand."""
        start = 0
        for rows in blocks_of(self.rows):
            part = slice(start, start + len(rows))
            files = None if self.files is None else self.files[part]
            yield replace(self, rows=rows, lines=self.lines[part], files=files, before=self.before + start)
            start += len(rows)


class RowWriter:
    """Takes a file's rows one after another."""

    def __init__(self) -> None:
        """None yet."""
        self._rows, self._lines = SpoolWriter[Row](), SpoolWriter[int]()
        self._pending, self._pending_lines, self._size = list[Row](), list[int](), 0

    def __len__(self) -> int:
        """Rows so far."""
        return len(self._rows) + len(self._pending)

    def add(self, row: Row, line: int, size: int) -> None:
        """One more, of about `size` bytes."""
        self._pending.append(row)
        self._pending_lines.append(line)
        self._size += size
        if len(self._pending) >= BLOCK_ROWS or self._size >= BLOCK_SIZE:
            self._hand_on()

    def done(self) -> tuple[Sequence[Row], Sequence[int]]:
        """Rows and lines: lists where they are few."""
        self._hand_on()
        return self._rows.done(), self._lines.done()

    def _hand_on(self) -> None:
        report(len(self._pending), "reading")
        self._rows.extend(self._pending, self._size)
        self._lines.extend(self._pending_lines, 8 * len(self._pending_lines))
        self._pending, self._pending_lines, self._size = [], [], 0

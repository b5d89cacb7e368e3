"""A file's rows under its column names, each with the line that it starts on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Table:
    """`rows` map column to value: text from csv, any JSON value from json. `lines` count from 1.

    `is_prose`: the rows are the lines of a text, so that a blank one has a meaning. `files`: the file of
    each row, where `path` is a folder or a pattern. `counts_records`: `lines` are record numbers.
    """

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    lines: list[int]
    path: Path
    notices: tuple[str, ...] = ()
    is_prose: bool = False
    files: list[Path] | None = None
    counts_records: bool = False

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
        rows = [{**row, name: value(number)} for number, row in enumerate(self.rows)]
        columns = self.columns if name in self.columns else (*self.columns, name)
        return replace(self, columns=columns, rows=rows)

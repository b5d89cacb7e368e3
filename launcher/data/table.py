"""A file's rows under its column names, each with the line that it starts on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Table:
    """`rows` map column to value: text from csv, any JSON value from json. `lines` count from 1.

    `is_prose`: the rows are the lines of a text, so that a blank one has a meaning.
    """

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    lines: list[int]
    path: Path
    notices: tuple[str, ...] = ()
    is_prose: bool = False

    def where(self, row: int) -> str:
        """`file:line` of a row."""
        return f"{self.path}:{self.lines[row]}"

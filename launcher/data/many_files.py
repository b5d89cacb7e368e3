"""A folder or a pattern of files as one table: sorted by name, the same columns in each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from launcher.data.place import files_in, known_endings
from launcher.data.reading import Reading
from launcher.data.runs import Runs
from launcher.data.spool import size_of
from launcher.data.table import RowWriter, Table
from launcher.errors import DataError, LauncherError, Problem


def read_many(path: Path, reading: Reading, read_one: Callable[[Path, Reading], Table]) -> Table:
    """All rows of all files. Raises DataError with every file's problems, up to twenty of them."""
    files = files_in(path)
    if not files:
        raise DataError(_nothing(path, reading.key))
    joined, problems = _Joined(), list[Problem]()
    for file in files:
        try:
            table = read_one(file, reading)
        except LauncherError as error:
            problems += error.problems
            continue
        if joined.first is not None and _differ(table, joined.first):
            problems.append(_other_columns(table, joined.first))
        elif not problems:
            joined.add(table)
        joined.first = joined.first or replace(table, rows=[], lines=[])
    if problems:
        raise DataError(problems[:20])
    return joined.table(path)


def _differ(table: Table, first: Table) -> bool:
    """JSON records may leave out what is empty: there the columns are whatever occurs in any file."""
    strict = table.path.suffix.lower() not in (".json", ".jsonl", ".ndjson")
    return strict and set(table.columns) != set(first.columns)


class _Joined:
    """The rows of all files, and what is told of each."""

    def __init__(self) -> None:
        self.first: Table | None = None
        self.writer, self.files = RowWriter(), Runs[Path]()
        self.columns, self.notices = dict[str, None](), list[str]()
        self.is_prose = self.counts_records = True

    def add(self, table: Table) -> None:
        for row, line in zip(table.rows, table.lines, strict=True):
            self.writer.add(row, line, size_of(row))
        self.files.add(table.path, len(table.rows))
        self.columns.update(dict.fromkeys(table.columns))
        self.notices += table.notices
        self.is_prose &= table.is_prose
        self.counts_records &= table.counts_records

    def table(self, path: Path) -> Table:
        rows, lines = self.writer.done()
        paths = self.files.items
        names = ", ".join(_below(each, path) for each in paths[:5]) + (" ..." if len(paths) > 5 else "")
        said = [f"{path.name}: {len(paths):,} files: {names}"] if len(paths) > 1 else []
        return Table(
            columns=tuple(self.columns),
            rows=rows,
            lines=lines,
            path=path,
            notices=(*said, *self.notices),
            is_prose=self.is_prose,
            files=self.files,
            counts_records=self.counts_records,
        )


def _below(file: Path, path: Path) -> str:
    """A file's name inside a folder, or its own."""
    return str(file.relative_to(path)) if path.is_dir() else file.name


def _other_columns(table: Table, first: Table) -> Problem:
    missing = [name for name in first.columns if name not in table.columns]
    more = [name for name in table.columns if name not in first.columns]
    what = f"it has no column {', '.join(missing)}" if missing else f"it has the column {', '.join(more)} too"
    return Problem(
        where=str(table.path),
        what=f"{what}: its columns are not those of {first.path.name}",
        right=", ".join(first.columns),
        type="the same columns in every file, or a pattern that leaves this file out",
    )


def _nothing(path: Path, key: str) -> Problem:
    what = "the folder holds no data file" if path.is_dir() else "the pattern finds no file"
    return Problem(
        where=str(path),
        what=what,
        right=f"files that end in one of: {known_endings()} (or these with .gz, .zst)",
        type=f"{key}=FOLDER, or a pattern in quotes: {key}='data/*.jsonl'",
    )

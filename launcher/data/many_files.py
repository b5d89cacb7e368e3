"""A folder or a pattern of files as one table: sorted by name, the same columns in each."""

from collections.abc import Callable
from pathlib import Path

from launcher.data.place import files_in, known_endings
from launcher.data.reading import Reading
from launcher.data.table import Table
from launcher.errors import DataError, LauncherError, Problem


def read_many(path: Path, reading: Reading, read_one: Callable[[Path, Reading], Table]) -> Table:
    """All rows of all files. Raises DataError with every file's problems, up to twenty of them."""
    files = files_in(path)
    if not files:
        raise DataError(_nothing(path, reading.key))
    tables, problems = list[Table](), list[Problem]()
    for file in files:
        try:
            tables.append(read_one(file, reading))
        except LauncherError as error:
            problems += error.problems
    problems += [_other_columns(each, tables[0]) for each in tables if _differ(each, tables[0])]
    if problems:
        raise DataError(problems[:20])
    return _joined(tables, path)


def _differ(table: Table, first: Table) -> bool:
    """JSON records may leave out what is empty: there the columns are whatever occurs in any file."""
    strict = table.path.suffix.lower() not in (".json", ".jsonl", ".ndjson")
    return strict and set(table.columns) != set(first.columns)


def _joined(tables: list[Table], path: Path) -> Table:
    files = [table.path for table in tables for _ in table.rows]
    names = ", ".join(table.path.name for table in tables[:5]) + (" ..." if len(tables) > 5 else "")
    said = (f"{path.name}: {len(tables):,} files: {names}",) if len(tables) > 1 else ()
    return Table(
        columns=tuple(dict.fromkeys(column for table in tables for column in table.columns)),
        rows=[row for table in tables for row in table.rows],
        lines=[line for table in tables for line in table.lines],
        path=path,
        notices=(*said, *(notice for table in tables for notice in table.notices)),
        is_prose=all(table.is_prose for table in tables),
        files=files,
        counts_records=all(table.counts_records for table in tables),
    )


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

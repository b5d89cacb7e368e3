"""Columns that a recipe makes out of others: a.0.b looks inside a value, A+B joins, @file is the origin."""

from typing import Any

from launcher.data.table import Table

ORIGINS = ("@file", "@folder")


def is_made(name: str, table: Table) -> bool:
    """Whether a name is no column of the file, but can be made from one."""
    if name in table.columns:
        return False
    parts = name.split("+")
    return name in ORIGINS or all(_root(part, table) is not None for part in parts)


def make(name: str, table: Table) -> Table:
    """The table with that column; as it is where the column is there already.

    A+B+C is the list of the values in these columns.
    """
    if not is_made(name, table):
        return table
    if name in ORIGINS:
        return table.with_column(name, lambda row: _origin(name, table, row))
    parts = name.split("+")
    if len(parts) == 1:
        return table.with_column(name, lambda row: value_at(table, row, name))
    return table.with_column(name, lambda row: [value_at(table, row, part) for part in parts])


def _origin(name: str, table: Table, row: int) -> str:
    """The file's name up to its first dot, or the folder's name."""
    file = table.file(row)
    return file.name.partition(".")[0] if name == "@file" else file.parent.name


def _root(name: str, table: Table) -> str | None:
    """The longest column whose name begins a dotted name."""
    parts = name.split(".")
    candidates = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((each for each in candidates if each in table.columns), None)


def value_at(table: Table, row: int, name: str) -> Any:
    """The value of a dotted name in a row; None where there is nothing."""
    root = _root(name, table)
    if root is None:
        return None
    value = table.rows[row].get(root)
    for part in name[len(root) :].split(".")[1:]:
        value = _inside(value, part)
    return value


def _inside(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    return None

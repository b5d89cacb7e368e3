"""Rows from pyarrow and `datasets`, which are imported where a file needs them and not before."""

import importlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from launcher.data.table import RowWriter, Table
from launcher.errors import DataError, Problem


def load_package(name: str, path: Path) -> Any:
    """The module. Raises DataError with the line that installs it."""
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DataError(
            Problem(
                where=str(path),
                what=f"reading this needs the package {package}, which is not installed",
                right=f"{package}, or the rows as csv or jsonl",
                type=f"pip install {package}",
            )
        ) from None


def table_of(parts: Iterable[Any], names: Sequence[str], path: Path, features: Any = None) -> Table:
    """The rows of pyarrow tables or batches as one, with record numbers for lines.

    `features`: of `datasets`, which stores classes as ids with names beside them: a person knows the names.
    """
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataError(
            Problem(
                where=str(path),
                what=f"column '{twice[0]}' stands twice",
                right="a name of its own for every column",
                type="another name for one of them",
            )
        )
    classes, writer = _classes(features), RowWriter()
    for part in parts:
        size = part.nbytes // max(1, part.num_rows)
        odd = _odd_columns(part.schema)
        for row in part.to_pylist():
            for column in odd:
                row[column] = _plain(row[column])
            for column, named in classes.items():
                row[column] = named.get(row[column])  # -1 stands for no label
            writer.add(row, len(writer) + 1, size)
    rows, lines = writer.done()
    told = [
        f"{path.name}: '{column}' holds the classes {', '.join(list(named.values())[:20])}"
        for column, named in classes.items()
    ]
    return Table(
        columns=tuple(names), rows=rows, lines=lines, path=path, counts_records=True, notices=tuple(told)
    )


def _odd_columns(schema: Any) -> list[str]:
    """Columns of numbers with a fixed point, and of bytes, which many writers mean as text."""
    kinds = ("decimal", "binary", "large_binary", "fixed_size_binary")
    return [field.name for field in schema if str(field.type).startswith(kinds)]


def _plain(value: Any) -> Any:
    """A number or a text; bytes that are no UTF-8 stay what they are."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode("utf-8")
    return value


def _classes(features: Any) -> dict[str, dict[int, str]]:
    """The class names of every column that has them, by id."""
    return {
        column: dict(enumerate(feature.names))
        for column, feature in (features or {}).items()
        if type(feature).__name__ == "ClassLabel" and feature.names
    }

"""Rows from pyarrow and `datasets`, which are imported where a file needs them and not before."""

import importlib
from pathlib import Path
from typing import Any

from launcher.data.table import Table
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


def table_of(table: Any, path: Path) -> Table:
    """A pyarrow table's rows, with record numbers for lines."""
    columns = tuple(table.column_names)
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise DataError(
            Problem(
                where=str(path),
                what=f"column '{twice[0]}' stands twice",
                right="a name of its own for every column",
                type="another name for one of them",
            )
        )
    return Table(
        columns=columns,
        rows=table.to_pylist(),
        lines=list(range(1, table.num_rows + 1)),
        path=path,
        counts_records=True,
    )


def with_label_names(table: Table, features: Any) -> Table:
    """`datasets` stores classes as ids with names beside them: the names are what a person knows."""
    notices = []
    for column, feature in (features or {}).items():
        names = getattr(feature, "names", None)
        if type(feature).__name__ != "ClassLabel" or not names:
            continue
        named = dict(enumerate(names))
        for row in table.rows:
            row[column] = named.get(row[column])  # -1 stands for no label
        notices.append(f"{table.path.name}: '{column}' holds the classes {', '.join(names[:20])}")
    return table.said(*notices)

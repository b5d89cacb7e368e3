"""Sets of classes: a list of names, names in one field, or a column of 0 and 1 for each class."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.findings import Findings, excerpt
from launcher.data.label_words import chosen_rows
from launcher.data.number_file import NumberWriter
from launcher.data.ragged import Float32
from launcher.data.table import Table
from launcher.errors import DataError, Problem
from launcher.registry import nearest

_BETWEEN = re.compile(r"\s*[,;|]\s*")
_YES, _NO = {"1", "1.0", "true", "yes"}, {"", "0", "0.0", "false", "no"}
Set = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SetMap:
    """Class names in the order of the vector's places."""

    names: tuple[str, ...]

    def ids(self, table: Table, column: str, rows: Sequence[int]) -> Float32:
        """0/1 of every class, float32[rows, classes]. Raises DataError for a name that is no class."""
        known = {name: place for place, name in enumerate(self.names)}
        findings, writer = Findings(table.path), NumberWriter(np.float32)
        for row, found in sets_of(table, column, rows):
            vector = np.zeros(len(self.names), dtype=np.float32)
            for name in found:
                if name in known:
                    vector[known[name]] = 1
                else:
                    findings.add(self._unknown(table, row, column, name))
            writer.add(vector)
        findings.raise_any()
        return writer.done().reshape(-1, len(self.names))

    def _unknown(self, table: Table, row: int, column: str, name: str) -> Problem:
        close = nearest(name, [each.lower() for each in self.names])
        return Problem(
            where=f"{table.where(row)}  {column}",
            what=f"label '{name}' is not a class of the training rows",
            right=f"one of: {', '.join(self.names[:20])}" + (f" (nearest: {close})" if close else ""),
            type=f"mend the label, or data.labels=[{', '.join(self.names[:20])}, {name}]",
        )


def sets_of(table: Table, column: str, rows: Sequence[int]) -> Iterator[tuple[int, Set]]:
    """Each row and its classes. Raises DataError at the end for values that are neither list nor text."""
    flags = column.split("+") if "+" in column else []
    findings = Findings(table.path)
    for row, values in chosen_rows(table, rows):
        value = values.get(column)
        names = _flagged(value or [], flags) if flags else _named(value)
        if names is None:
            findings.add(_wrong(table, row, column, value, flags=bool(flags)))
        yield row, names or ()
    findings.raise_any()


def _named(value: Any) -> Set | None:
    """A list of names, or a text that holds them between commas, semicolons or bars."""
    if value is None:
        return ()
    if isinstance(value, str):
        inner = value.strip().removeprefix("[").removesuffix("]")
        return tuple(name for part in _BETWEEN.split(inner) if (name := part.strip().strip("'\"")))
    if isinstance(value, list) and all(isinstance(each, str | int) for each in value):
        return tuple(str(each).strip() for each in value)
    return (str(value),) if isinstance(value, int) else None


def _flagged(values: list[Any], columns: list[str]) -> Set | None:
    words = ["" if value is None else str(value).strip().lower() for value in values]
    if any(word not in _YES | _NO for word in words):
        return None
    return tuple(column for column, word in zip(columns, words, strict=True) if word in _YES)


def learn_sets(
    table: Table, column: str, rows: Sequence[int], names: tuple[str, ...] | None
) -> tuple[SetMap, tuple[str, ...]]:
    """The classes: the recipe's, the columns of 0 and 1, or all that occur in the training rows."""
    counts = Counter(name for _, found in sets_of(table, column, rows) for name in found)
    if names is None:
        names = tuple(column.split("+")) if "+" in column else tuple(sorted(counts))
    if len(names) < 2:
        raise DataError(
            Problem(
                where=f"{table.path}  {column}",
                what=f"'{column}' holds {len(names)} class{'es' * (not names)}",
                right="two classes or more",
                type="another column: data.columns.label=COLUMN, or data.layout=text_label",
            )
        )
    listed = ", ".join(f"{place} = {name} ({counts[name]:,})" for place, name in enumerate(names[:20]))
    mean = sum(counts.values()) / max(1, len(rows))
    said = f"{len(names)} classes: {listed}{' ...' if len(names) > 20 else ''}; {mean:.2f} a row on average"
    return SetMap(names=names), (said,)


def _wrong(table: Table, row: int, column: str, value: Any, *, flags: bool) -> Problem:
    return Problem(
        where=f"{table.where(row)}  {column}",
        what=f"this is no set of classes: {excerpt(value)}",
        right="0 or 1 in each column" if flags else 'a list of names, or names with commas: "a, b"',
        type="mend that record, or another column: data.columns.label=COLUMN",
    )

"""Numbers to predict: read strictly, finite, and reported with their range."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.findings import Findings, excerpt
from launcher.data.label_words import chosen_rows
from launcher.data.ragged import Float32
from launcher.data.table import Table
from launcher.errors import DataError, Problem


@dataclass(frozen=True, kw_only=True)
class NumberMap:
    """One number a row; `names` holds the column, which names the model's only output."""

    names: tuple[str, ...]

    def ids(self, table: Table, column: str, rows: Sequence[int]) -> Float32:
        """The numbers, float32[rows]. Raises DataError for what is none, or not finite."""
        findings = Findings(table.path)
        found = np.zeros(len(rows), dtype=np.float32)
        for place, (row, values) in enumerate(chosen_rows(table, rows)):
            number = _number(values.get(column))
            if number is None:
                findings.add(_wrong(table, row, column))
            else:
                found[place] = number
        findings.raise_any()
        return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < 3e38 else None


def learn_numbers(table: Table, column: str, rows: Sequence[int]) -> tuple[NumberMap, tuple[str, ...]]:
    """The map, and the numbers' range, mean and deviation. Raises DataError where they never differ."""
    named = NumberMap(names=(column,))
    found = named.ids(table, column, rows)
    if len(found) and float(found.min()) == float(found.max()):
        raise DataError(
            Problem(
                where=f"{table.path}  {column}",
                what=f"'{column}' is {found[0]:g} in every row",
                right="numbers that differ",
                type="another column: data.columns.label=COLUMN",
            )
        )
    said = f"'{column}' from {found.min():g} to {found.max():g}, mean {found.mean():.4g}, "
    return named, (f"{said}standard deviation {found.std():.4g}",)


def _wrong(table: Table, row: int, column: str) -> Problem:
    value = table.rows[row].get(column)
    missing = value is None or value == ""
    return Problem(
        where=f"{table.where(row)}  {column}",
        what="the number is missing" if missing else f"this is no finite number: {excerpt(value)}",
        right="a number in every row, such as 3.5",
        type="fill it in, or remove the row",
    )

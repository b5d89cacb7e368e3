"""The labels of rows as words: each once, and for every row which one it is."""

from array import array
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.findings import Findings, excerpt
from launcher.data.number_file import NumberWriter
from launcher.data.ragged import Int32
from launcher.data.table import Row, Table
from launcher.errors import Problem

AT_ONCE = 2**16
Seen = tuple[int, int]  # first row, number of rows


@dataclass(frozen=True, kw_only=True)
class Words:
    """The labels of rows: every word once, its first row and number of rows; and the word's place, by row."""

    words: tuple[str, ...]
    firsts: tuple[int, ...]
    counts: tuple[int, ...]
    codes: Int32

    def seen(self, spelt: Sequence[str] | None = None, known: Container[str] = ()) -> dict[str, Seen]:
        """First row and count of each word (as spelt otherwise) that is not known."""
        found: dict[str, Seen] = {}
        for word, first, count in zip(spelt or self.words, self.firsts, self.counts, strict=True):
            if word not in known:
                row, number = found.get(word, (first, 0))
                found[word] = (row, number + count)
        return found


def words_of(table: Table, column: str, rows: Sequence[int]) -> Words:
    """The labels as words. Raises DataError for missing ones and for what cannot name a class."""
    findings, writer, codes = Findings(table.path), NumberWriter(np.int32), array("i")
    numbers, firsts, counts = dict[str, int](), list[int](), list[int]()
    for row, values in chosen_rows(table, rows):
        value = values.get(column)
        word = _word(value)
        if word is None:
            findings.add(_no_label(table, column, row, value))
            continue
        code = numbers.setdefault(word, len(numbers))
        if code == len(firsts):
            firsts.append(row)
            counts.append(0)
        counts[code] += 1
        codes.append(code)
        if len(codes) >= AT_ONCE:
            writer.add(np.array(codes))
            codes = array("i")
    findings.raise_any()
    writer.add(np.array(codes))
    return Words(words=tuple(numbers), firsts=tuple(firsts), counts=tuple(counts), codes=writer.done())


def chosen_rows(table: Table, rows: Sequence[int]) -> Iterator[tuple[int, Row]]:
    """Those rows of a table with their numbers, in order."""
    if len(rows) == len(table.rows):
        return zip(rows, table.rows, strict=True)
    return ((row, table.rows[row]) for row in rows)


def _word(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if value == value else None  # no number is how tables write "none"
    return value.strip() or None if isinstance(value, str) else None


def _no_label(table: Table, column: str, row: int, value: Any) -> Problem:
    missing = value is None or isinstance(value, str | float)
    return Problem(
        where=f"{table.where(row)}  {column}",
        what="the label is missing" if missing else f"the label is not one word or number: {excerpt(value)}",
        right="a class in every row",
        type="fill the label in, or remove the row"
        if missing
        else "data.layout=multi_label for sets of classes",
    )

"""A table's columns as texts by role: types checked, empty ones left out or refused, never guessed."""

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from launcher.data.findings import Findings, excerpt
from launcher.data.layout import Layout
from launcher.data.recognise import Recognised
from launcher.data.spool import SpoolWriter
from launcher.data.table import Table
from launcher.errors import DataError, Problem

MOST_EMPTY = 0.01
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
Texts = dict[str, Sequence[str]]


def texts_of(table: Table, recognised: Recognised, findings: Findings | None = None) -> dict[str, list[str]]:
    """Texts by role; what is absent or null is an empty text. Raises DataError for anything but text.

    `findings` gets what is wrong instead, where the table is a part of another.
    """
    found = Findings(table.path) if findings is None else findings
    roles = recognised.layout.texts(recognised.columns)
    texts = {role: _column(table, recognised.columns.get(role), found) for role in roles}
    if findings is None:
        found.raise_any()
    return texts


def _column(table: Table, column: str | None, findings: Findings) -> list[str]:
    if column is None:
        return [""] * len(table.rows)
    values = [row.get(column) for row in table.rows]
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            findings.add(_not_text(table, row, column, value))
    texts = [value if isinstance(value, str) else "" for value in values]
    for row in _broken(texts):
        findings.add(_half_a_letter(table, row, column, texts[row]))
    return texts


def _broken(texts: Sequence[str]) -> list[int]:
    r"""Rows with a lone surrogate (`\ud83d` without its second half), which no tokenizer takes."""
    return [row for row, text in enumerate(texts) if not text.isascii() and _SURROGATE.search(text)]


def _half_a_letter(table: Table, row: int, column: str, text: str) -> Problem:
    return Problem(
        where=f"{table.where(row)}  {column}",
        what=f"record {table.record(row):,}, field '{column}' holds half of a character: "
        f"{excerpt(ascii(text))}",
        right=r"both halves, such as \ud83d\ude00, or the character itself",
        type="mend or remove that record",
    )


def _not_text(table: Table, row: int, column: str, value: Any) -> Problem:
    kind = _KINDS.get(type(value), type(value).__name__)
    return Problem(
        where=f"{table.where(row)}  {column}",
        what=f"record {table.record(row):,}, field '{column}' is {kind}: {excerpt(value)}",
        right="text in quotes, or null for none",
        type=f'"{column}": "..."',
    )


def documents(table: Table, texts: Texts) -> tuple[Texts, Sequence[int]]:
    """Lines of prose as documents, and the row on which each begins.

    A document is what stands between blank lines, or each line where none is blank; a file ends one.
    """
    lines = texts["text"]
    if all(line.strip() for line in lines):
        return texts, range(len(lines))
    writer, starts, part = SpoolWriter[str](), array("q"), list[str]()

    def end() -> None:
        if part:
            text = "\n".join(part)
            writer.add(text, len(text))
            part.clear()

    for row, line in enumerate(lines):
        if row and table.file(row) != table.file(row - 1):
            end()
        if not line.strip():
            end()
            continue
        if not part:
            starts.append(row)
        part.append(line)
    end()
    return {"text": writer.done()}, starts


class Empties:
    """Rows without a text that they need, counted."""

    def __init__(self, layout: Layout, policy: str) -> None:
        """`policy`: drop, keep, error, or auto, which drops up to 1 % of the rows."""
        self.layout, self.policy = layout, policy
        self.number, self.lines, self.where = 0, list[str](), ""
        self.records, self.lacking = list[str](), dict[str, None]()

    def of(self, table: Table, texts: Mapping[str, Sequence[str]]) -> list[int]:
        """The table's rows that lack a text. Words such as NA, None or null are texts."""
        found = set[int]()
        for group in self.layout.complete:
            if empty := _all_empty([texts[role] for role in group]):
                found.update(empty)
                self.lacking[" or ".join(group)] = None
        rows = sorted(found)
        if rows:
            self.where = self.where or table.where(rows[0])
            shown = rows[: 5 - min(5, len(self.lines))]
            self.lines += [_line(table, row) for row in shown]
            self.records += [f"{table.record(row):,}" for row in shown]
            self.number += len(rows)
        return rows

    @property
    def are_kept(self) -> bool:
        """Whether such rows stay."""
        return self.policy == "keep"

    def said(self, table: Table) -> tuple[str, ...]:
        """What to say of them; `table`: all rows. Raises DataError where they are too many."""
        if not self.number:
            return ()
        on_one_line = len(set(self.lines)) < len(self.lines)  # an array of records
        places = ", ".join(self.records if on_one_line else self.lines)
        places = f"{'record' if on_one_line else 'line'} {places}"
        places += " ..." if self.number > len(self.lines) else ""
        num_rows, name = len(table.rows), table.path.name
        said = f"{self.number:,} of {num_rows:,} rows have no {', no '.join(self.lacking)} ({places})"
        if self.are_kept:
            return (f"{name}: {said}; they are kept (data.empty_text: keep)",)
        most = {"auto": MOST_EMPTY, "drop": 1.0, "error": 0.0}[self.policy]
        if self.number > most * num_rows or self.number == num_rows:
            raise DataError(self._too_many(said, most))
        return (f"{name}: {said}; they are left out",)

    def _too_many(self, said: str, most: float) -> Problem:
        return Problem(
            where=self.where,
            what=said,
            right=f"a text in every row; up to {most:.0%} may be empty and are left out",
            type="data.empty_text=drop, another column (data.columns), or a file without those rows",
        )


def _line(table: Table, row: int) -> str:
    line = f"{table.lines[row]:,}"
    return line if table.files is None else f"{line} of {table.file(row).name}"


def complete_rows(
    table: Table, texts: Mapping[str, Sequence[str]], layout: Layout, policy: str = "auto"
) -> tuple[list[int], tuple[str, ...]]:
    """The rows that hold every text that they need, and a notice about the others; see `Empties`."""
    empties = Empties(layout, policy)
    gone = set(empties.of(table, texts))
    said = empties.said(table)
    return [row for row in range(len(table.rows)) if empties.are_kept or row not in gone], said


def _all_empty(columns: Sequence[Sequence[str]]) -> list[int]:
    return [row for row, values in enumerate(zip(*columns, strict=True)) if not any(map(str.strip, values))]

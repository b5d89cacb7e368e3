"""A table's columns as texts by role: types checked, empty ones left out or refused, never guessed."""

import re
from collections.abc import Sequence
from typing import Any

from launcher.data.findings import Findings, excerpt
from launcher.data.layout import Layout
from launcher.data.recognise import Recognised
from launcher.data.table import Table
from launcher.errors import DataError, Problem

MOST_EMPTY = 0.01
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
Texts = dict[str, list[str]]


def texts_of(table: Table, recognised: Recognised) -> Texts:
    """Texts by role; what is absent or null is an empty text. Raises DataError for anything but text."""
    findings = Findings(table.path)
    roles = [role.name for role in recognised.layout.roles if role.kind == "text"]
    texts = {role: _column(table, recognised.columns.get(role), findings) for role in roles}
    findings.raise_any()
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
        what=f"record {row + 1:,}, field '{column}' holds half of a character: {excerpt(ascii(text))}",
        right=r"both halves, such as \ud83d\ude00, or the character itself",
        type="mend or remove that record",
    )


def _not_text(table: Table, row: int, column: str, value: Any) -> Problem:
    kind = _KINDS.get(type(value), type(value).__name__)
    return Problem(
        where=f"{table.where(row)}  {column}",
        what=f"record {row + 1:,}, field '{column}' is {kind}: {excerpt(value)}",
        right="text in quotes, or null for none",
        type=f'"{column}": "..."',
    )


def documents(table: Table, texts: Texts) -> tuple[Texts, list[int]]:
    """Lines of prose as documents: what stands between blank lines, or each line where none is blank."""
    lines = texts["text"]
    if all(line.strip() for line in lines):
        return texts, table.lines
    joined: list[str] = []
    starts: list[int] = []
    open_document = False
    for line, number in zip(lines, table.lines, strict=True):
        if not line.strip():
            open_document = False
        elif open_document:
            joined[-1] += "\n" + line
        else:
            joined.append(line)
            starts.append(number)
            open_document = True
    return {"text": joined}, starts


def complete_rows(table: Table, texts: Texts, layout: Layout) -> tuple[list[int], tuple[str, ...]]:
    """The rows that hold every text that they need, and a notice about the others.

    Words such as NA, None or null are texts. Raises DataError when more than 1 % of the rows are empty.
    """
    empty = sorted({row for group in layout.complete for row in _all_empty([texts[role] for role in group])})
    if not empty:
        return list(range(len(table.rows))), ()
    lines = ", ".join(f"{table.lines[row]:,}" for row in empty[:5]) + (" ..." if len(empty) > 5 else "")
    said = f"{len(empty):,} of {len(table.rows):,} rows have no text (line {lines})"
    if len(empty) > MOST_EMPTY * len(table.rows):
        raise DataError(
            Problem(
                where=table.where(empty[0]),
                what=said,
                right=f"a text in every row; up to {MOST_EMPTY:.0%} may be empty and are left out",
                type="another column (data.columns), or a file without those rows",
            )
        )
    gone = set(empty)
    return [row for row in range(len(table.rows)) if row not in gone], (
        f"{table.path.name}: {said}; they are left out",
    )


def _all_empty(columns: Sequence[list[str]]) -> list[int]:
    return [row for row, values in enumerate(zip(*columns, strict=True)) if not any(map(str.strip, values))]

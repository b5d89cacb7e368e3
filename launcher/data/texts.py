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
    roles = [role.name for role in recognised.layout.of_kind("text")]
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
    """Lines of prose as documents, and the row on which each begins.

    A document is what stands between blank lines, or each line where none is blank; a file ends one.
    """
    lines = texts["text"]
    if all(line.strip() for line in lines):
        return texts, list(range(len(lines)))
    parts: list[list[str]] = []
    starts: list[int] = []
    open_document = False
    for row, line in enumerate(lines):
        if row and table.file(row) != table.file(row - 1):
            open_document = False
        if not line.strip():
            open_document = False
        elif open_document:
            parts[-1].append(line)
        else:
            parts.append([line])
            starts.append(row)
            open_document = True
    return {"text": ["\n".join(part) for part in parts]}, starts


def complete_rows(
    table: Table, texts: Texts, layout: Layout, policy: str = "auto"
) -> tuple[list[int], tuple[str, ...]]:
    """The rows that hold every text that they need, and a notice about the others.

    Words such as NA, None or null are texts. `policy`: drop, keep, error, or auto, which drops up to 1 %
    of the rows. Raises DataError for more of them, or for any (error).
    """
    every = list(range(len(table.rows)))
    empty = sorted({row for group in layout.complete for row in _all_empty([texts[role] for role in group])})
    if not empty:
        return every, ()
    lines = ", ".join(f"{table.lines[row]:,}" for row in empty[:5]) + (" ..." if len(empty) > 5 else "")
    said = f"{len(empty):,} of {len(table.rows):,} rows have no text (line {lines})"
    if policy == "keep":
        return every, (f"{table.path.name}: {said}; they are kept (data.empty_text: keep)",)
    most = {"auto": MOST_EMPTY, "drop": 1.0, "error": 0.0}[policy]
    if len(empty) > most * len(table.rows) or len(empty) == len(every):
        raise DataError(_too_many_empty(table, empty, said, most))
    gone = set(empty)
    return [row for row in every if row not in gone], (f"{table.path.name}: {said}; they are left out",)


def _too_many_empty(table: Table, empty: list[int], said: str, most: float) -> Problem:
    return Problem(
        where=table.where(empty[0]),
        what=said,
        right=f"a text in every row; up to {most:.0%} may be empty and are left out",
        type="data.empty_text=drop, another column (data.columns), or a file without those rows",
    )


def _all_empty(columns: Sequence[list[str]]) -> list[int]:
    return [row for row, values in enumerate(zip(*columns, strict=True)) if not any(map(str.strip, values))]

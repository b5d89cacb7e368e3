"""Rows that belong together: by the dialogue's id, in the order of their utterance ids."""

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from launcher.data.examples import Dialogues
from launcher.data.findings import Findings, excerpt
from launcher.data.picked import pick
from launcher.data.ragged import Bool, Float64, Int32, Int64
from launcher.data.table import Table
from launcher.errors import Problem

_LISTED = re.compile(r"\[\s*(['\"])(.*?)\1\s*(,.*)?\]", re.DOTALL)
_MOST_BACK = 0.001


def dialogues_of(
    table: Table, columns: dict[str, str], texts: Mapping[str, Sequence[str]]
) -> tuple[Dialogues, Int64, tuple[str, ...]]:
    """All utterances, where each row stands among them, and what is missing between them.

    Raises DataError for rows without a dialogue's id or with an utterance id that is no number.
    """
    numbers, places = _keys(table, columns)
    ordered: Int64 = np.lexsort((places, numbers)).astype(np.int64)  # stable: rows of one id as in the file
    stands = np.empty(len(ordered), dtype=np.int64)
    stands[ordered] = np.arange(len(ordered), dtype=np.int64)
    dialogues = Dialogues(
        texts=_in_order(texts["text"], ordered),
        speakers=_in_order(texts["speaker"], ordered),
        offsets=np.concatenate([[0], np.cumsum(np.bincount(numbers))]).astype(np.int64),
    )
    told = _said(table, dialogues.offsets, places[ordered], known="position" in columns)
    return dialogues, stands, told


def _in_order(column: Sequence[str], ordered: Int64) -> Sequence[str]:
    """The texts in another order; in memory where that order goes back and forth in their file."""
    num_back = int((np.diff(ordered) < 0).sum())
    return pick(column if num_back <= _MOST_BACK * len(ordered) else list(column), ordered)


def speaker_of(text: str) -> str:
    """The name in EmoryNLP's `['Monica Geller']`; of several the first; other texts as they are."""
    found = _LISTED.fullmatch(text.strip())
    return found[2] if found else text


def _keys(table: Table, columns: dict[str, str]) -> tuple[Int32, Float64]:
    """Of every row the number of its dialogue, by first appearance, and its place in it."""
    findings, known = Findings(table.path), dict[str, int]()
    numbers, places = array("i"), array("d")
    for row, values in enumerate(table.rows):
        key = _key(values.get(columns["dialogue"]))
        if not key:
            findings.add(_missing(table, row, columns["dialogue"]))
        value = values.get(columns["position"]) if "position" in columns else row
        place = _number(value)
        if place != place:
            findings.add(_no_number(table, row, columns["position"], value))
        numbers.append(known.setdefault(key, len(known)))
        places.append(place)
    findings.raise_any()
    return np.frombuffer(numbers, dtype=np.int32), np.frombuffer(places, dtype=np.float64)


def _key(value: Any) -> str:
    """The id as a word; ids of several columns joined. Empty where one is missing."""
    parts = [_word(part) for part in (value if isinstance(value, list) else [value])]
    return "/".join(parts) if all(parts) else ""


def _word(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _said(table: Table, offsets: Int64, places: Float64, *, known: bool) -> tuple[str, ...]:
    """`places`: of all utterances, dialogue by dialogue."""
    sizes = np.diff(offsets)
    lines = [f"{table.path.name}: {len(sizes):,} dialogues of 1 to {int(sizes.max()):,} utterances"]
    if not known:
        lines.append(f"{table.path.name}: no utterance ids: rows are taken in the order of the file")
        return tuple(lines)
    steps = np.diff(places, prepend=-np.inf)
    steps[offsets[:-1]] = 1  # from one dialogue to the next
    # A gap is between utterances, or before the first: dialogues begin at the file's least id.
    late = places[offsets[:-1]] > places.min()
    gaps = int((late | _any_of_each(steps > 1, offsets)).sum())
    twice = int(_any_of_each(steps == 0, offsets).sum())
    if gaps:
        lines.append(
            f"{table.path.name}: {gaps:,} dialogues have gaps in their utterance ids (rows were removed "
            "upstream); their order is kept"
        )
    if twice:
        lines.append(f"{table.path.name}: {twice:,} dialogues have an utterance id twice")
    return tuple(lines)


def _any_of_each(marks: Bool, offsets: Int64) -> Bool:
    """Whether any utterance of each dialogue is marked."""
    found: Bool = np.logical_or.reduceat(marks, offsets[:-1])
    return found


def _missing(table: Table, row: int, column: str) -> Problem:
    return Problem(
        where=f"{table.where(row)}  {column}",
        what="the dialogue's id is missing",
        right="an id in every row",
        type="data.layout=text_label if rows stand alone",
    )


def _no_number(table: Table, row: int, column: str, value: Any) -> Problem:
    return Problem(
        where=f"{table.where(row)}  {column}",
        what=f"the utterance's id is no number: {excerpt(value)}",
        right="a number that orders the utterances of a dialogue",
        type="data.columns.position=COLUMN",
    )

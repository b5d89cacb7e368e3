"""Rows that belong together: by the dialogue's id, in the order of their utterance ids."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from launcher.data.examples import Dialogues
from launcher.data.findings import Findings, excerpt
from launcher.data.ragged import Int64
from launcher.data.table import Table
from launcher.errors import Problem

_LISTED = re.compile(r"\[\s*(['\"])(.*?)\1\s*(,.*)?\]", re.DOTALL)
Key = str


def dialogues_of(
    table: Table, columns: dict[str, str], texts: Mapping[str, Sequence[str]]
) -> tuple[Dialogues, Int64, tuple[str, ...]]:
    """All utterances, where each row stands among them, and what is missing between them.

    Raises DataError for rows without a dialogue's id or with an utterance id that is no number.
    """
    keys, places = _keys(table, columns)
    members: defaultdict[Key, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        members[key].append(row)
    groups = [sorted(rows, key=lambda row: (places[row], row)) for rows in members.values()]
    ordered = [row for group in groups for row in group]
    stands = np.empty(len(ordered), dtype=np.int64)
    stands[ordered] = np.arange(len(ordered), dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    dialogues = Dialogues(
        texts=[texts["text"][row] for row in ordered],
        speakers=[texts["speaker"][row] for row in ordered],
        offsets=offsets,
    )
    return dialogues, stands, _said(table, groups, places, known="position" in columns)


def speaker_of(text: str) -> str:
    """The name in EmoryNLP's `['Monica Geller']`; of several the first; other texts as they are."""
    found = _LISTED.fullmatch(text.strip())
    return found[2] if found else text


def _keys(table: Table, columns: dict[str, str]) -> tuple[list[Key], list[float]]:
    findings = Findings(table.path)
    keys, places = [], []
    for row, values in enumerate(table.rows):
        keys.append(_key(values.get(columns["dialogue"])))
        if not keys[-1]:
            findings.add(_missing(table, row, columns["dialogue"]))
        value = values.get(columns["position"]) if "position" in columns else row
        places.append(_number(value))
        if places[-1] != places[-1]:
            findings.add(_no_number(table, row, columns["position"], value))
    findings.raise_any()
    return keys, places


def _key(value: Any) -> Key:
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


def _said(table: Table, groups: list[list[int]], places: list[float], *, known: bool) -> tuple[str, ...]:
    longest = max(map(len, groups))
    lines = [f"{table.path.name}: {len(groups):,} dialogues of 1 to {longest:,} utterances"]
    if not known:
        lines.append(f"{table.path.name}: no utterance ids: rows are taken in the order of the file")
        return tuple(lines)
    first = min(places)
    gaps = sum(_has_gap([places[row] for row in group], first) for group in groups)
    twice = sum(len({places[row] for row in group}) < len(group) for group in groups)
    if gaps:
        lines.append(
            f"{table.path.name}: {gaps:,} dialogues have gaps in their utterance ids (rows were removed "
            "upstream); their order is kept"
        )
    if twice:
        lines.append(f"{table.path.name}: {twice:,} dialogues have an utterance id twice")
    return tuple(lines)


def _has_gap(places: list[float], first: float) -> bool:
    """Between utterances, or before the first: dialogues begin at the file's least id."""
    return places[0] > first or any(
        later - earlier > 1 for earlier, later in zip(places, places[1:], strict=False)
    )


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

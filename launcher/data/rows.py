"""A file's usable rows: texts, turns or dialogues by layout, cleaned and filled, the empty ones left out."""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from launcher.data.columns import make
from launcher.data.dialogues import dialogues_of, speaker_of
from launcher.data.examples import Dialogues, Examples, Turn
from launcher.data.findings import Findings
from launcher.data.markup import clean, count, said
from launcher.data.options import DataOptions
from launcher.data.picked import pick
from launcher.data.ragged import Float32, Int64
from launcher.data.recognise import Recognised
from launcher.data.spool import SpoolWriter, mapped
from launcher.data.table import Table
from launcher.data.texts import Empties, Texts, complete_rows, documents, texts_of
from launcher.data.turns import turns_of


class Learned(Protocol):
    """What the training rows taught of the labels: their names, and how a row's becomes numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order of their ids; a regression's column."""

    def ids(self, table: Table, column: str, rows: Sequence[int]) -> Int64 | Float32:
        """The labels of those rows."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """`kept` counts rows of the table; texts, turns and lines are already theirs."""

    table: Table
    recognised: Recognised
    kept: Sequence[int]
    texts: Texts
    lines: Sequence[int]
    notices: tuple[str, ...]
    turns: Sequence[tuple[Turn, ...]] | None = None
    tools: Sequence[str] | None = None
    dialogues: Dialogues | None = None
    utterances: Int64 | None = None

    @classmethod
    def of(
        cls, table: Table, recognised: Recognised, fill: Callable[[str], str], options: DataOptions
    ) -> "Rows":
        """From a table whose layout is known. Raises DataError for what cannot be used."""
        for column in recognised.columns.values():
            table = make(column, table)
        layout = recognised.layout
        if layout.of_kind("turns"):
            return _conversations(table, recognised, fill)
        is_prose = table.is_prose and layout.blank_separates
        empties = None if is_prose or layout.role("dialogue") else Empties(layout, options.empty_text)
        texts, kept, told = _gathered(table, recognised, fill, options, empties)
        if layout.role("dialogue"):
            return _with_dialogues(table, recognised, texts, told, options)
        if is_prose:
            texts, kept = documents(table, texts)
        return cls(
            table=table,
            recognised=recognised,
            kept=kept,
            texts=texts,
            lines=table.lines if isinstance(kept, range) else picked_lines(table.lines, kept),
            notices=told,
        )

    @property
    def label_column(self) -> str | None:
        """The column of the labels."""
        return next(
            (self.recognised.columns.get(role.name) for role in self.recognised.layout.of_kind("label")), None
        )

    def examples(self, labels: Learned | None) -> Examples:
        """The rows with their labels' numbers. Raises DataError for labels that are none."""
        column = self.label_column
        files = self.table.files
        return Examples(
            layout=self.recognised.layout.name,
            texts=self.texts,
            labels=labels.ids(self.table, column, self.kept) if labels and column else None,
            lines=self.lines,
            path=self.table.path,
            turns=self.turns,
            tools=self.tools,
            dialogues=self.dialogues,
            utterances=self.utterances,
            files=files if files is None else pick(files, np.asarray(self.kept, dtype=np.int64)),
        )


def _gathered(
    table: Table,
    recognised: Recognised,
    fill: Callable[[str], str],
    options: DataOptions,
    empties: Empties | None,
) -> tuple[Texts, Sequence[int], tuple[str, ...]]:
    """Texts by role, the table's rows that they are of, and what to say. `empties`: None keeps all rows."""
    findings, found, cleaned = Findings(table.path), Counter[str](), options.html == "clean"
    roles = recognised.layout.texts(recognised.columns)
    writers = {role: SpoolWriter[str]() for role in roles}
    kept: array[int] | None = None  # until the first row goes
    number = 0
    for block in table.blocks():
        texts = texts_of(block, recognised, findings)
        for role, column in texts.items():
            found += count(column)
            texts[role] = [fill(clean(text) if cleaned else text) for text in column]
        gone = set(empties.of(block, texts)) if empties else set[int]()
        stay = [row for row in range(len(block.rows)) if row not in gone or (empties and empties.are_kept)]
        if kept is None and len(stay) < len(block.rows):
            kept = array("q", range(number))
        if kept is not None:
            kept.extend(number + row for row in stay)
        number += len(block.rows)
        for role, column in texts.items():
            chosen = column if len(stay) == len(column) else [column[row] for row in stay]
            writers[role].extend(chosen, sum(map(len, chosen)))
    findings.raise_any()
    told = said(table.path.name, found, cleaned=cleaned) + (empties.said(table) if empties else ())
    rows = range(number) if kept is None else kept
    return {role: writer.done() for role, writer in writers.items()}, rows, told


def _with_dialogues(
    table: Table, recognised: Recognised, texts: Texts, told: tuple[str, ...], options: DataOptions
) -> Rows:
    """Rows that belong together."""
    complete, empty = complete_rows(table, texts, recognised.layout, options.empty_text)
    kept = array("q", complete)
    texts = {**texts, "speaker": mapped(texts["speaker"], lambda _, name: speaker_of(name))}
    dialogues, stands, talked = dialogues_of(table, recognised.columns, texts)
    index = np.asarray(kept, dtype=np.int64)
    return Rows(
        table=table,
        recognised=recognised,
        kept=kept,
        texts={role: pick(column, index) for role, column in texts.items()},
        lines=picked_lines(table.lines, kept),
        notices=(*told, *empty, *talked),
        dialogues=dialogues,
        utterances=stands[index],
    )


def picked_lines(lines: Sequence[int], rows: Sequence[int]) -> Sequence[int]:
    """The lines of those rows."""
    return pick(lines, np.asarray(rows, dtype=np.int64))


def _conversations(table: Table, recognised: Recognised, fill: Callable[[str], str]) -> Rows:
    turns, told = turns_of(table, recognised, fill)
    column = recognised.columns.get("tools")
    tools = mapped(table.rows, lambda _, row: _json_text(row.get(column))) if column else None
    return Rows(
        table=table,
        recognised=recognised,
        kept=range(len(turns)),
        texts={},
        lines=table.lines,
        notices=told,
        turns=turns,
        tools=tools,
    )


def _json_text(value: object) -> str:
    """Tools as JSON text, whether the file holds them so or as objects."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if value else ""

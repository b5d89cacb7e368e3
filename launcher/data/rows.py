"""A file's usable rows: texts, turns or dialogues by layout, cleaned and filled, the empty ones left out."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from launcher.data.columns import make
from launcher.data.dialogues import dialogues_of, speaker_of
from launcher.data.examples import Dialogues, Examples, Turn
from launcher.data.markup import clean, count, said
from launcher.data.options import DataOptions
from launcher.data.ragged import Float32, Int64
from launcher.data.recognise import Recognised
from launcher.data.table import Table
from launcher.data.texts import Texts, complete_rows, documents, texts_of
from launcher.data.turns import turns_of


class Learned(Protocol):
    """What the training rows taught of the labels: their names, and how a row's becomes numbers."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order of their ids; a regression's column."""

    def ids(self, table: Table, column: str, rows: list[int]) -> Int64 | Float32:
        """The labels of those rows."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """`kept` counts rows of the table; texts, turns and lines are already theirs."""

    table: Table
    recognised: Recognised
    kept: list[int]
    texts: Texts
    lines: list[int]
    notices: tuple[str, ...]
    turns: list[tuple[Turn, ...]] | None = None
    tools: list[str] | None = None
    dialogues: Dialogues | None = None
    utterances: Int64 | None = None

    @classmethod
    def of(
        cls, table: Table, recognised: Recognised, fill: Callable[[str], str], options: DataOptions
    ) -> "Rows":
        """From a table whose layout is known. Raises DataError for what cannot be used."""
        for column in recognised.columns.values():
            table = make(column, table)
        if recognised.layout.of_kind("turns"):
            return _conversations(table, recognised, fill)
        texts, told = _cleaned(table, texts_of(table, recognised), options)
        texts = {role: [fill(text) for text in column] for role, column in texts.items()}
        if table.is_prose and recognised.layout.blank_separates:
            texts, kept = documents(table, texts)
            lines = [table.lines[row] for row in kept]
            return cls(
                table=table, recognised=recognised, kept=kept, texts=texts, lines=lines, notices=tuple(told)
            )
        return _complete(table, recognised, texts, told, options)

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
            files=None if files is None else [files[row] for row in self.kept],
        )


def _complete(
    table: Table, recognised: Recognised, texts: Texts, told: tuple[str, ...], options: DataOptions
) -> Rows:
    kept, empty = complete_rows(table, texts, recognised.layout, options.empty_text)
    dialogues, stands, talked = None, None, tuple[str, ...]()
    if recognised.layout.role("dialogue"):
        texts = {**texts, "speaker": [speaker_of(name) for name in texts["speaker"]]}
        dialogues, stands, talked = dialogues_of(table, recognised.columns, texts)
    return Rows(
        table=table,
        recognised=recognised,
        kept=kept,
        texts={role: [column[row] for row in kept] for role, column in texts.items()},
        lines=[table.lines[row] for row in kept],
        notices=(*told, *empty, *talked),
        dialogues=dialogues,
        utterances=None if stands is None else stands[kept],
    )


def _conversations(table: Table, recognised: Recognised, fill: Callable[[str], str]) -> Rows:
    turns, told = turns_of(table, recognised, fill)
    column = recognised.columns.get("tools")
    tools = [_json_text(row.get(column)) for row in table.rows] if column else None
    return Rows(
        table=table,
        recognised=recognised,
        kept=list(range(len(turns))),
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


def _cleaned(table: Table, texts: Texts, options: DataOptions) -> tuple[Texts, tuple[str, ...]]:
    found = Counter[str]()
    for column in texts.values():
        found += count(column)
    cleaned = options.html == "clean"
    told = said(table.path.name, found, cleaned=cleaned)
    if cleaned and told:
        texts = {role: [clean(text) for text in column] for role, column in texts.items()}
    return texts, told

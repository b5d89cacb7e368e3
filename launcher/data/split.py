"""From the recipe's files to the training and the evaluation examples."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from launcher.data.examples import Examples
from launcher.data.fill import Filler
from launcher.data.labels import LabelMap, learn_labels
from launcher.data.options import DataOptions
from launcher.data.ragged import Int64
from launcher.data.read import read_rows
from launcher.data.recognise import Recognised, apply, recognise
from launcher.data.table import Table
from launcher.data.texts import Texts, complete_rows, documents, texts_of
from launcher.errors import DataError, Problem

# Streams of the seed that no epoch number can be: see RowOrder.
_HELD_OUT, _TRAIN_DRAW, _EVAL_DRAW = 2**31 + 1, 2**31 + 2, 2**31 + 3


@dataclass(frozen=True, kw_only=True)
class Splits:
    """Training rows, held-out rows if there are any, and what was found out on the way."""

    train: Examples
    evaluation: Examples | None
    layout: str
    label_names: tuple[str, ...]
    notices: tuple[str, ...]


def read_splits(
    options: DataOptions, train_path: Path, eval_path: Path | None, task: str, seed: int
) -> Splits:
    """Read, recognise, check and divide the data. Raises DataError for what cannot be trained on."""
    filler = Filler(options.fill)
    table = read_rows(train_path, source=options.source)
    recognised = recognise(table, options, task)
    train = _Rows.of(table, recognised, filler)
    labels, said = _learn(train, options)
    notices = [*table.notices, recognised.said(table), *train.notices, *said]
    held_out = None
    if eval_path is not None:
        eval_table = read_rows(eval_path, key="data.eval_file", source=options.source)
        held_out = _Rows.of(eval_table, apply(recognised, eval_table), filler)
        notices += [
            *eval_table.notices,
            f"{eval_path.name}: {len(eval_table.rows):,} rows",
            *held_out.notices,
        ]
    examples = train.examples(labels)
    evaluation = held_out.examples(labels) if held_out else None
    if evaluation is None and options.eval_fraction is not None:
        examples, evaluation = hold_out(examples, options.eval_fraction, seed)
    return Splits(
        train=_draw(examples, options.max_train_rows, seed, _TRAIN_DRAW),
        evaluation=evaluation and _draw(evaluation, options.max_eval_rows, seed, _EVAL_DRAW),
        layout=recognised.layout.name,
        label_names=labels.names if labels else (),
        notices=(*notices, *filler.notices(), *_without_effect(options, examples, evaluation)),
    )


def _learn(rows: "_Rows", options: DataOptions) -> tuple[LabelMap | None, tuple[str, ...]]:
    column = rows.recognised.columns.get("label")
    if column is None:
        return None, ()
    labels, said = learn_labels(rows.table, column, rows.kept, options.labels)
    return labels, tuple(f"{rows.table.path.name}: {notice}" for notice in said)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """A file's usable rows: `kept` counts rows of the table, `texts` and `lines` are already theirs."""

    table: Table
    recognised: Recognised
    kept: list[int]
    texts: Texts
    lines: list[int]
    notices: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, recognised: Recognised, filler: Filler) -> "_Rows":
        texts = {
            role: [filler(text) for text in column] for role, column in texts_of(table, recognised).items()
        }
        if table.is_prose and recognised.layout.blank_separates:
            texts, lines = documents(table, texts)
            kept, notices = list(range(len(lines))), tuple[str, ...]()
        else:
            kept, notices = complete_rows(table, texts, recognised.layout)
            texts = {role: [column[row] for row in kept] for role, column in texts.items()}
            lines = [table.lines[row] for row in kept]
        return cls(table=table, recognised=recognised, kept=kept, texts=texts, lines=lines, notices=notices)

    def examples(self, labels: LabelMap | None) -> Examples:
        column = self.recognised.columns.get("label")
        return Examples(
            layout=self.recognised.layout.name,
            texts=self.texts,
            labels=labels.ids(self.table, column, self.kept) if labels and column else None,
            lines=self.lines,
            path=self.table.path,
        )


def hold_out(examples: Examples, fraction: float, seed: int) -> tuple[Examples, Examples]:
    """(training, evaluation) rows by seed, each in the file's order. Both get at least one row."""
    num_rows = len(examples)
    if num_rows < 2:
        raise DataError(
            Problem(
                where=str(examples.path),
                what="one row cannot be divided into training and evaluation",
                right="two rows or more, or no eval_fraction",
                type="data.eval_fraction=null",
            )
        )
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(num_rows)
    num_held_out = min(num_rows - 1, max(1, round(num_rows * fraction)))
    return examples.take(np.sort(order[num_held_out:])), examples.take(np.sort(order[:num_held_out]))


def _draw(examples: Examples, most: int | None, seed: int, stream: int) -> Examples:
    """At most so many rows, drawn by seed: files are often sorted by class."""
    if most is None or most >= len(examples):
        return examples
    drawn: Int64 = np.random.default_rng([seed, stream]).permutation(len(examples))[:most]
    return examples.take(np.sort(drawn))


def _without_effect(options: DataOptions, train: Examples, evaluation: Examples | None) -> tuple[str, ...]:
    num_held_out = len(evaluation) if evaluation else 0
    asked = (
        ("max_train_rows", options.max_train_rows, len(train)),
        ("max_eval_rows", options.max_eval_rows, num_held_out),
    )
    return tuple(
        f"data.{name}={most:,} has no effect: there are {found:,} rows"
        for name, most, found in asked
        if most is not None and most >= found
    )

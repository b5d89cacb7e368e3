"""From the recipe's files to the training and the evaluation examples."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from launcher.data.balance import balanced_weights, class_counts, imbalance
from launcher.data.duplicates import Side, check_leaks, contradicted, distinct, prints_of, repeated
from launcher.data.examples import Examples
from launcher.data.fill import Filler
from launcher.data.label_sets import learn_sets
from launcher.data.labels import learn_labels
from launcher.data.number_labels import learn_numbers
from launcher.data.options import DataOptions
from launcher.data.place import kind_of
from launcher.data.ragged import Int64
from launcher.data.read import read_rows
from launcher.data.reading import Reading
from launcher.data.recognise import apply, recognise
from launcher.data.rows import Learned, Rows
from launcher.errors import DataError, Problem

# Streams of the seed that no epoch number can be: see RowOrder.
_HELD_OUT, _TRAIN_DRAW, _EVAL_DRAW = 2**31 + 1, 2**31 + 2, 2**31 + 3


@dataclass(frozen=True, kw_only=True)
class Splits:
    """Training rows, held-out rows if there are any, and what was found out on the way.

    `label_names`: classes by id, or the one column of a regression. `class_weights` by class id, where
    the recipe asks for them.
    """

    train: Examples
    evaluation: Examples | None
    layout: str
    label_names: tuple[str, ...]
    notices: tuple[str, ...]
    columns: tuple[str, ...] = ()
    roles: dict[str, str] | None = None
    class_weights: tuple[float, ...] | None = None


def read_splits(
    options: DataOptions, train_path: Path, eval_path: Path | None, task: str, seed: int
) -> Splits:
    """Read, recognise, check and divide the data. Raises DataError for what cannot be trained on."""
    filler, reading = Filler(options.fill), Reading.of(options)
    table = read_rows(train_path, reading)
    recognised = recognise(table, options, task)
    train = Rows.of(table, recognised, filler, options)
    labels, said = _learn(train, options)
    notices = [*table.notices, recognised.said(table), *train.notices, *said]
    held_out = None
    eval_path = eval_path or _other_split(train_path, options)
    if eval_path is not None:
        eval_table = read_rows(eval_path, reading.for_evaluation(options))
        held_out = Rows.of(eval_table, apply(recognised, eval_table), filler, options)
        notices += [
            *eval_table.notices,
            f"{eval_path.name}: {len(eval_table.rows):,} rows",
            *held_out.notices,
        ]
    side, told = _repetitions(_side(train.examples(labels)), options)
    other = _side(held_out.examples(labels)) if held_out else None
    if other is None and options.eval_fraction is not None:
        stay, go = held_out_rows(side.examples, options.eval_fraction, seed)
        side, other = side.take(stay), side.take(go)
    leaks = check_leaks(side, other, options.max_leaked_fraction) if other else ()
    examples, evaluation = side.examples, None if other is None else other.examples
    names = labels.names if labels else ()
    return Splits(
        train=_draw(examples, options.max_train_rows, seed, _TRAIN_DRAW),
        evaluation=evaluation and _draw(evaluation, options.max_eval_rows, seed, _EVAL_DRAW),
        layout=recognised.layout.name,
        label_names=names,
        notices=(
            *notices,
            *filler.notices(),
            *told,
            *leaks,
            *imbalance(examples, evaluation, names),
            *_without_effect(options, examples, evaluation),
        ),
        columns=table.columns,
        roles=recognised.columns,
        class_weights=_weights(options, examples, names),
    )


def _other_split(train_path: Path, options: DataOptions) -> Path | None:
    """The same data set, where the recipe evaluates on another split of it."""
    return train_path if options.eval_split and kind_of(train_path) in ("hub", "saved") else None


def _learn(rows: Rows, options: DataOptions) -> tuple[Learned | None, tuple[str, ...]]:
    column, kind = rows.label_column, rows.recognised.layout.labels
    if column is None:
        return None, ()
    labels: Learned
    if kind == "number":
        labels, said = learn_numbers(rows.table, column, rows.kept)
    elif kind == "set":
        labels, said = learn_sets(rows.table, column, rows.kept, options.labels)
    else:
        labels, said = learn_labels(rows.table, column, rows.kept, options.labels)
    return labels, tuple(f"{rows.table.path.name}: {notice}" for notice in said)


def _side(examples: Examples) -> Side:
    return Side(examples=examples, prints=prints_of(examples))


def _repetitions(side: Side, options: DataOptions) -> tuple[Side, tuple[str, ...]]:
    lines: list[str] = []
    if len(rows := contradicted(side.prints)):
        where = side.examples.where(int(rows[0]))
        lines.append(f"{len(rows):,} texts stand there twice with different labels (one at {where})")
    number, num_rows = len(repeated(side.prints)), len(side.examples)
    if options.drop_duplicates and number:
        side = side.take(distinct(side.prints))
        lines.append(f"{number:,} repeated rows are left out")
    elif number > 0.01 * num_rows:
        lines.append(
            f"{number:,} of {num_rows:,} rows repeat an earlier one; "
            "data.drop_duplicates=true leaves them out"
        )
    return side, tuple(f"{side.examples.path.name}: {line}" for line in lines)


def _weights(options: DataOptions, examples: Examples, names: tuple[str, ...]) -> tuple[float, ...] | None:
    counts = class_counts(examples, len(names)) if options.class_weights == "balanced" else None
    if counts is None:
        return None
    if examples.labels is not None and examples.labels.ndim == 2:
        # A class of a set is learned by itself: what it lacks in rows, its rows weigh more.
        return tuple(float((len(examples) - count) / count) if count else 1.0 for count in counts.tolist())
    return balanced_weights(counts.tolist(), len(examples))


def hold_out(examples: Examples, fraction: float, seed: int) -> tuple[Examples, Examples]:
    """(training, evaluation) rows by seed, each in the file's order. Both get at least one row."""
    stay, go = held_out_rows(examples, fraction, seed)
    return examples.take(stay), examples.take(go)


def held_out_rows(examples: Examples, fraction: float, seed: int) -> tuple[Int64, Int64]:
    """The row numbers of `hold_out`."""
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
    if examples.dialogues is not None:
        return _hold_out_dialogues(examples, fraction, seed)
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(num_rows)
    num_held_out = min(num_rows - 1, max(1, round(num_rows * fraction)))
    return np.sort(order[num_held_out:]), np.sort(order[:num_held_out])


def _hold_out_dialogues(examples: Examples, fraction: float, seed: int) -> tuple[Int64, Int64]:
    """Whole dialogues, as many as hold the fraction of rows: a context must not cross the border."""
    assert examples.dialogues is not None and examples.utterances is not None
    numbers = np.searchsorted(examples.dialogues.offsets, examples.utterances, side="right") - 1
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(np.unique(numbers))
    if len(order) < 2:
        raise DataError(
            Problem(
                where=str(examples.path),
                what="one dialogue cannot be divided into training and evaluation",
                right="two dialogues or more, or no eval_fraction",
                type="data.eval_fraction=null",
            )
        )
    sizes = np.bincount(numbers, minlength=int(numbers.max()) + 1)[order]
    wanted = np.searchsorted(np.cumsum(sizes), fraction * len(examples), side="left") + 1
    held = np.isin(numbers, order[: min(len(order) - 1, int(wanted))])
    return np.flatnonzero(~held).astype(np.int64), np.flatnonzero(held).astype(np.int64)


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

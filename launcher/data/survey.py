"""Everything that can be told of data before it is trained on: rows, labels, lengths, examples, problems."""

from array import array
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from launcher.data.encode import encode
from launcher.data.examples import Examples
from launcher.data.lengths import Length, choose_length
from launcher.data.measure import Measured, Unit, measure
from launcher.data.options import DataOptions, LengthChoice
from launcher.data.preview import label_counts, plain, rendered
from launcher.data.ragged import Int64
from launcher.data.read import read_rows
from launcher.data.reading import Reading
from launcher.data.recognise import NoLayout
from launcher.data.split import Splits, read_splits
from launcher.data.table import Table
from launcher.data.tokens import tokenise
from launcher.errors import LauncherError, Problem

UNCUT = 2**30
TASKS = ("classification", "causal_lm")


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found. After a problem, what lies behind it is None or empty."""

    task: str
    splits: Splits | None = None
    lengths: Measured | None = None
    length: Length | None = None
    examples: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    table: Table | None = None

    @property
    def num_rows(self) -> int | None:
        """Rows to train on; those of the file where its layout is not known; None where it cannot be read."""
        if self.splits is not None:
            return len(self.splits.train)
        return None if self.table is None else len(self.table.rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The training file's columns."""
        if self.splits is not None:
            return self.splits.columns
        return () if self.table is None else self.table.columns

    @property
    def labels(self) -> dict[str, Any] | None:
        """Names, and rows of each in both splits; None where rows have no label."""
        if self.splits is None or self.splits.train.labels is None:
            return None
        held = self.splits.evaluation
        names = self.splits.label_names
        return {
            "names": list(names),
            "train": label_counts(self.splits.train.labels, names),
            "evaluation": None if held is None else label_counts(held.labels, names),
        }

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        splits = self.splits
        lengths = self.lengths and {
            **self.lengths.as_json(),
            "chosen": None if self.length is None else asdict(self.length),
        }
        return {
            "rows": self.num_rows,
            "eval_rows": None if splits is None or splits.evaluation is None else len(splits.evaluation),
            "task": self.task,
            "columns": list(self.columns),
            "layout": None if splits is None else splits.layout,
            "roles": {} if splits is None else splits.roles,
            "labels": self.labels,
            "lengths": lengths,
            "examples": list(self.examples),
            "notices": list(self.notices),
            "problems": [asdict(problem) for problem in self.problems],
        }


def survey(
    options: DataOptions,
    task: str | None,
    seed: int,
    tokenizer: Any = None,
    limit: int | None = None,
    *,
    num_examples: int = 5,
) -> Survey:
    """Look at the data of a recipe. Problems are given back, not raised.

    `task`: None takes the first that the columns fit, labels before texts. `tokenizer`: None measures
    words or characters. `limit`: the model's positions.
    """
    try:
        task, splits = _read(options, task, seed)
    except _Told as told:
        return Survey(
            task=told.task, problems=told.error.problems, table=_table(options), notices=told.notices
        )
    found = Survey(task=task, splits=splits, notices=splits.notices)
    try:
        return _measured(found, splits, options, tokenizer, limit, num_examples)
    except LauncherError as error:
        return replace(found, problems=error.problems)


def _table(options: DataOptions) -> Table | None:
    """The training file where it can be read, though not used."""
    try:
        return read_rows(Path(options.train_file), Reading.of(options))
    except LauncherError:
        return None


class _Told(Exception):
    """What is wrong, seen as data for a task; "" where the columns are no task's."""

    def __init__(self, task: str, error: LauncherError, notices: tuple[str, ...] = ()) -> None:
        super().__init__(task)
        self.task, self.error, self.notices = task, error, notices


def _read(options: DataOptions, task: str | None, seed: int) -> tuple[str, Splits]:
    """The first task whose layouts know the columns, and the rows. Mistakes in these rows are told as its."""
    eval_path = Path(options.eval_file) if options.eval_file else None
    problems = dict[Problem, None]()
    for each in TASKS if task is None else (task,):
        try:
            return each, read_splits(options, Path(options.train_file), eval_path, each, seed)
        except NoLayout as error:
            problems.update(dict.fromkeys(error.problems))
        except LauncherError as error:
            raise _Told(each, error, _other_ways(options, task, each)) from None
    raise _Told(task or "", NoLayout(list(problems)))


def _other_ways(options: DataOptions, task: str | None, seen_as: str) -> tuple[str, ...]:
    """How rows with a label can be meant otherwise, where nobody has said how."""
    if task is not None or seen_as != "classification" or options.layout != "auto":
        return ()
    others = "layout=multi_label (sets of classes), layout=regression (numbers)"
    return (f"looked at as a text and its class; otherwise type {others} or --task causal_lm (texts alone)",)


def _measured(
    found: Survey, splits: Splits, options: DataOptions, tokenizer: Any, limit: int | None, most: int
) -> Survey:
    if tokenizer is None:
        unit, whole = _without_tokenizer(splits.train)
        chosen = _choose(options, whole, limit)
        length = Length(value=chosen.value, reason=chosen.reason.replace("tokens", unit))
        shown = plain(splits.train, splits.label_names, most)
        notices = (
            *splits.notices,
            f"lengths are {unit}: no tokenizer was named; type --model NAME for tokens",
        )
        known = _with(found, measure(whole, unit), length, shown, notices)
        return replace(known, problems=_unanswered(splits.train, options.max_lost_fraction))
    whole = token_lengths(splits.train, tokenizer, options, found.task)
    length = _choose(options, whole, limit)
    if limit is not None and isinstance(options.max_length, int):
        options = options.model_copy(update={"max_length": min(options.max_length, limit)})
    try:
        store = tokenise(
            splits.train, tokenizer, options=options, task=found.task, template=options.template, limit=limit
        )
    except LauncherError as error:
        shown = plain(splits.train, splits.label_names, most)
        known = _with(found, measure(whole, "tokens", [length.value]), length, shown, splits.notices)
        return replace(known, problems=error.problems)
    measured = measure(whole, "tokens", [store.max_length, length.value])
    shown = rendered(store, tokenizer, splits.label_names, most)
    return _with(found, measured, length, shown, (*splits.notices, *store.notices, str(store.length)))


def _unanswered(examples: Examples, most: float) -> tuple[Problem, ...]:
    """A problem where more conversations than that have no answer: a tokenizer is not needed to see it."""
    if examples.turns is None:
        return ()
    answered = [any(turn.role == "assistant" for turn in turns) for turns in examples.turns]
    number = answered.count(False)
    if number <= most * len(answered):
        return ()
    return (
        Problem(
            where=examples.where(answered.index(False)),
            what=f"{number:,} of {len(answered):,} conversations have no assistant's turn to learn from "
            "(this is the first)",
            right=f"at most {most:.1%} of the rows may be lost (data.max_lost_fraction)",
            type="conversations with answers, or the column that holds them: data.columns.answer=COLUMN",
        ),
    )


def _with(
    found: Survey, lengths: Measured, length: Length, examples: list[str], notices: tuple[str, ...]
) -> Survey:
    return replace(found, lengths=lengths, length=length, examples=tuple(examples), notices=notices)


def _choose(options: DataOptions, whole: Int64, limit: int | None) -> Length:
    """What a percentile would choose: the recipe's own, or 95 % up to 512."""
    asked = options.max_length
    choice = LengthChoice.model_validate({}) if isinstance(asked, int) else asked
    return choose_length(choice, whole, limit)


def token_lengths(examples: Examples, tokenizer: Any, options: DataOptions, task: str) -> Int64:
    """Tokens of every row, uncut; of running text, of every document with its end token."""
    if examples.layout == "plain_text":
        documents = encode(examples.texts["text"], tokenizer, special_tokens=False)
        return np.asarray(documents.lengths + 1, dtype=np.int64)
    changes = {"max_length": UNCUT, "overflow": "auto", "packing": False, "window_stride": None}
    uncut = options.model_copy(update=changes)
    return tokenise(examples, tokenizer, options=uncut, task=task, template=options.template).lengths


def _without_tokenizer(examples: Examples) -> tuple[Unit, Int64]:
    """Words between white space; characters where most texts have hardly any white space (Chinese)."""
    words, characters = array("q"), array("q")
    for block in examples.blocks():
        for text in _whole_texts(block):
            words.append(len(text.split()))
            characters.append(len(text))
    if sum(characters) > 15 * max(1, sum(words)):
        return "characters", np.array(characters, dtype=np.int64)
    return "words", np.array(words, dtype=np.int64)


def _whole_texts(examples: Examples) -> list[str]:
    if examples.turns is not None:
        return ["\n".join(turn.text for turn in turns) for turns in examples.turns]
    columns = [column for role, column in examples.texts.items() if role != "speaker"]
    return [" ".join(parts) for parts in zip(*columns, strict=True)]

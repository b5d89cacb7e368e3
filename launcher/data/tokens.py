"""All rows of a split as token ids in flat arrays, ready to be cut into batches."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from launcher.data.answers import Joined, join_answers
from launcher.data.blocks import join_blocks
from launcher.data.context import Contexts
from launcher.data.encode import closing, encode, opening
from launcher.data.examples import Examples
from launcher.data.lengths import Length, choose_length
from launcher.data.options import DataOptions, Overflow
from launcher.data.overflow import Ends, Fitted, drop, fit
from launcher.data.pack import best_fit_decreasing, pieces
from launcher.data.pairs import Pairs
from launcher.data.ragged import Bool, Float32, Int32, Int64, Ragged, offsets_of
from launcher.data.relevance import Scores, TfIdf
from launcher.errors import BadValue, Problem

_UNLIMITED = 2**30


@dataclass(frozen=True, kw_only=True)
class TokenStore:
    """Rows of token ids, one after another.

    `labels` are class ids, 0/1 of every class (float32[rows, classes]), or numbers (float32[rows]).
    `trained` marks the ids that a language model learns to predict; None: all. `num_targets` of a row is
    what its loss is summed over: one for a labelled row (of a set, one a class); for a language model its
    trained ids without the first, which nothing predicts.
    `sources`: the row of the file that each row is a window of, from 0 without gaps; None: each its own.
    `segments`: where each packed sample starts in `input_ids`, and the end of the last; None: not packed.
    """

    task: str
    input_ids: Int32
    offsets: Int64
    labels: Int64 | Float32 | None
    trained: Bool | None
    num_targets: Int64
    max_length: int
    num_truncated: int = 0
    notices: tuple[str, ...] = ()
    length_reason: str = "as in the recipe"
    sources: Int64 | None = None
    segments: Int64 | None = None

    def __len__(self) -> int:
        """Rows."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64:
        """Tokens in each row."""
        return np.diff(self.offsets)

    @property
    def length(self) -> Length:
        """Most tokens of a row, and why."""
        return Length(value=self.max_length, reason=self.length_reason)


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """How rows are to become tokens. `length` is set for evaluation rows: the training rows' choice."""

    tokenizer: Any
    options: DataOptions
    template: str
    limit: int | None
    length: Length | None
    scores: Scores | None

    @property
    def overflow(self) -> Overflow:
        """Rows to evaluate on are never left out: a metric without the hard rows would flatter."""
        policy = self.options.overflow
        return "auto" if policy == "drop" and self.length is not None else policy

    def length_for(self, whole: Int64) -> Length:
        """The length for rows that have `whole` tokens uncut."""
        return self.length or choose_length(self.options.max_length, whole, self.limit)

    def joined(self, examples: Examples, max_length: int) -> Joined:
        """Prompts and answers as rows, cut to a length."""
        return join_answers(
            examples,
            self.tokenizer,
            self.template,
            max_length,
            train_on=self.options.train_on,
            most_lost=self.options.max_lost_fraction,
        )

    def first_length(self) -> Length:
        """The length where the rows themselves cannot tell it; a percentile gives its cap."""
        return self.length or choose_length(self.options.max_length, np.zeros(0, dtype=np.int64), self.limit)


class _Uncut(Protocol):
    """Rows whose tokens are known, and that can be made to fit."""

    @property
    def lengths(self) -> Int64: ...

    def fit(self, max_length: int) -> Fitted: ...


def tokenise(
    examples: Examples,
    tokenizer: Any,
    *,
    options: DataOptions,
    task: str,
    template: str = "auto",
    limit: int | None = None,
    length: Length | None = None,
    scores: Scores | None = None,
) -> TokenStore:
    """Token ids of all rows, none longer than the length that the options choose (or the model's `limit`).

    `length`: what was chosen on the training rows, for evaluation rows. `scores`: which turns of a dialogue
    matter, where the options ask for attention. Raises DataError when more than one row in a hundred keeps
    no answer, or the tokenizer has no end token; BadValue for an overflow policy that a layout cannot have.
    """
    wanted = _Wanted(
        tokenizer=tokenizer, options=options, template=template, limit=limit, length=length, scores=scores
    )
    if task != "causal_lm":
        return _classified(examples, wanted, task)
    store = _documents(examples, wanted) if examples.layout == "plain_text" else _answered(examples, wanted)
    return packed(store) if options.packing else store


def _classified(examples: Examples, wanted: _Wanted, task: str) -> TokenStore:
    uncut = _uncut(examples, wanted)
    whole = uncut.lengths
    length = wanted.length_for(whole)
    fitted = uncut.fit(length.value)
    labels = examples.labels
    if labels is not None and labels.dtype != np.int64:
        known: tuple[Overflow, ...] = ("auto", "keep_head", "keep_tail", "keep_head_tail", "drop")
        _require(wanted.overflow, known, "labels that are not classes: windows are scored by class")
    if fitted.sources is not None and labels is not None:
        labels = labels[fitted.sources]
    num_rows = len(fitted.rows.offsets) - 1
    said = [*_long_notice(examples, fitted.num_long, length.value, fitted.notice)]
    if wanted.options.context.turns and examples.dialogues is None:
        said.append(f"data.context.turns has no effect: rows of layout {examples.layout} stand alone")
    is_windows = wanted.overflow == "windows"
    return TokenStore(
        task=task,
        input_ids=fitted.rows.values,
        offsets=fitted.rows.offsets,
        labels=labels,
        trained=None,
        # A set of classes is one target a class, a class or a number is one.
        num_targets=np.full(num_rows, 0 if labels is None else labels[:1].size, dtype=np.int64),
        max_length=length.value,
        length_reason=length.reason,
        num_truncated=fitted.num_long,
        notices=tuple(said),
        sources=fitted.sources if is_windows else None,
    )


def _uncut(examples: Examples, wanted: _Wanted) -> _Uncut:
    options, tokenizer = wanted.options, wanted.tokenizer
    if options.context.turns and examples.dialogues is not None:
        _require(wanted.overflow, ("auto",), "rows with context: their farthest turns go first")
        return Contexts(examples, tokenizer, options.context, _scores(examples, wanted))
    if "pair" in examples.texts:
        _require(wanted.overflow, ("auto",), "pairs: the longer text is cut first")
        return Pairs(examples.texts["text"], examples.texts["pair"], tokenizer)
    return _Texts(examples.texts["text"], wanted)


def _scores(examples: Examples, wanted: _Wanted) -> Scores | None:
    retention = wanted.options.context.retention
    assert examples.dialogues is not None
    if retention == "tfidf":
        return TfIdf(examples.dialogues)
    assert retention == "nearest" or wanted.scores is not None, "attention scores come from the model"
    return wanted.scores if retention == "attention" else None


class _Texts:
    """Rows of one text each."""

    def __init__(self, texts: list[str], wanted: _Wanted) -> None:
        self.wanted = wanted
        self.rows = encode(texts, wanted.tokenizer, special_tokens=True)

    @property
    def lengths(self) -> Int64:
        return self.rows.lengths

    def fit(self, max_length: int) -> Fitted:
        tokenizer = self.wanted.tokenizer
        ends = Ends(opening=len(opening(tokenizer)), closing=len(closing(tokenizer)))
        return fit(self.rows, max_length, self.wanted.overflow, ends, self.wanted.options.window_stride)


def _require(policy: Overflow, known: tuple[Overflow, ...], why: str) -> None:
    if policy not in known:
        raise BadValue(
            Problem(
                where="data.overflow",
                what=f"{policy} does not go with {why}",
                right=" or ".join(known),
                type=f"data.overflow={known[0]}",
            )
        )


def _answered(examples: Examples, wanted: _Wanted) -> TokenStore:
    why = "answers: they stay whole, the prompt loses its beginning"
    _require(wanted.overflow, ("auto", "drop"), why)
    length = wanted.first_length()
    most = length.value
    if wanted.length is None and not isinstance(wanted.options.max_length, int) or wanted.overflow == "drop":
        most = _UNLIMITED  # rows are measured, or dropped, before anything is cut
    joined = wanted.joined(examples, most)
    if most == _UNLIMITED and wanted.overflow != "drop":
        length = wanted.length_for(joined.rows.lengths)
        if int(joined.rows.lengths.max(initial=0)) > length.value:
            joined = wanted.joined(examples, length.value)
    if wanted.overflow != "drop":
        what = "lose the beginning of the prompt"
        cut = _long_notice(examples, joined.num_truncated, length.value, what)
        return _language(joined.rows, joined.trained, length, joined.num_truncated, (*joined.notices, *cut))
    length = wanted.length_for(joined.rows.lengths)
    kept = drop(joined.rows, length.value)
    assert kept.sources is not None or not kept.num_long
    trained = joined.trained
    if kept.sources is not None:
        is_kept = np.repeat(joined.rows.lengths <= length.value, joined.rows.lengths)
        trained = trained[is_kept]
    said = _long_notice(examples, kept.num_long, length.value, kept.notice)
    return _language(kept.rows, trained, length, kept.num_long, (*joined.notices, *said))


def _documents(examples: Examples, wanted: _Wanted) -> TokenStore:
    _require(wanted.overflow, ("auto",), "plain text: it is cut into blocks, nothing is lost")
    length = wanted.first_length()
    if wanted.options.packing:
        rows = pieces(examples, wanted.tokenizer, length.value)
        return _language(rows, None, length, 0, ())
    rows = join_blocks(examples, wanted.tokenizer, length.value)
    said = f"{examples.path.name}: {len(examples):,} documents, {len(rows.values):,} tokens, "
    said += f"{len(rows.offsets) - 1:,} blocks of {length.value} tokens"
    return _language(rows, None, length, 0, (said,))


def _language(
    rows: Ragged, trained: Bool | None, length: Length, num_truncated: int, notices: tuple[str, ...]
) -> TokenStore:
    return TokenStore(
        task="causal_lm",
        input_ids=rows.values,
        offsets=rows.offsets,
        labels=None,
        trained=trained,
        num_targets=shifted_targets(rows.offsets, trained),
        max_length=length.value,
        length_reason=length.reason,
        num_truncated=num_truncated,
        notices=notices,
    )


def shifted_targets(offsets: Int64, trained: Bool | None) -> Int64:
    """Targets of each row after the shift by one: its trained ids, never counting the row's first id."""
    if trained is None:
        shorter: Int64 = np.maximum(np.diff(offsets) - 1, 0)
        return shorter
    counted = trained.copy()
    counted[offsets[:-1][np.diff(offsets) > 0]] = False
    before = offsets_of(counted.astype(np.int64))
    return before[offsets[1:]] - before[offsets[:-1]]


def packed(store: TokenStore) -> TokenStore:
    """The rows of a language model's store, several to a row, none longer than before allowed.

    A row of the result is what a batch counts. Its samples keep their own targets: the first id of each
    is predicted by nothing.
    """
    order, counts = best_fit_decreasing(store.lengths, store.max_length)
    rows = Ragged(values=store.input_ids, offsets=store.offsets).take(order)
    before = offsets_of(counts)
    trained = store.trained
    if trained is not None:
        marks = Ragged(values=trained.astype(np.int32), offsets=store.offsets).take(order)
        trained = marks.values.astype(np.bool_)
    targets = offsets_of(store.num_targets[order])
    offsets = rows.offsets[before]
    filled = len(rows.values) / max(1, len(counts) * store.max_length)
    said = f"packing: {len(store):,} samples in {len(counts):,} rows of up to {store.max_length} tokens, "
    said += f"{filled:.1%} full; a batch counts packed rows"
    return replace(
        store,
        input_ids=rows.values,
        offsets=offsets,
        trained=trained,
        num_targets=targets[before[1:]] - targets[before[:-1]],
        segments=rows.offsets,
        notices=(*store.notices, said),
    )


def _long_notice(examples: Examples, num_long: int, max_length: int, what: str) -> tuple[str, ...]:
    if not num_long:
        return ()
    share = num_long / len(examples)
    return (
        f"{examples.path.name}: {num_long:,} of {len(examples):,} rows ({share:.1%}) are longer than "
        f"max_length {max_length} and {what}",
    )

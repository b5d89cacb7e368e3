"""Labelled rows as tokens: single texts, pairs, and utterances with what was said before them."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from launcher.data.context import Contexts
from launcher.data.encode import closing, encode, opening
from launcher.data.examples import Examples
from launcher.data.options import Overflow
from launcher.data.overflow import Ends, Fitted, fit
from launcher.data.pairs import Pairs
from launcher.data.ragged import Int64
from launcher.data.relevance import Scores, TfIdf
from launcher.data.token_store import TokenStore
from launcher.data.wanted import Wanted, long_notice, require


class Uncut(Protocol):
    """Rows whose tokens are known, and that can be made to fit."""

    @property
    def lengths(self) -> Int64:
        """Ids of each row."""

    def fit(self, max_length: int) -> Fitted:
        """The rows, none longer than that."""


def classified(examples: Examples, wanted: Wanted, task: str) -> TokenStore:
    """Rows with a class, a set of classes or a number, as the options cut them."""
    uncut = _uncut(examples, wanted)
    length = wanted.length_for(uncut.lengths)
    fitted = uncut.fit(length.value)
    labels = examples.labels
    if labels is not None and labels.dtype != np.int64:
        known: tuple[Overflow, ...] = ("auto", "keep_head", "keep_tail", "keep_head_tail", "drop")
        require(wanted.overflow, known, "labels that are not classes: windows are scored by class")
    if fitted.sources is not None and labels is not None:
        labels = labels[fitted.sources]
    num_rows = len(fitted.rows.offsets) - 1
    said = [*long_notice(examples, fitted.num_long, length.value, fitted.notice)]
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
        num_targets=np.broadcast_to(np.int64(0 if labels is None else labels[:1].size), num_rows),
        max_length=length.value,
        length_reason=length.reason,
        num_truncated=fitted.num_long,
        notices=tuple(said),
        sources=fitted.sources if is_windows else None,
        token_types=fitted.kinds,
    )


def _uncut(examples: Examples, wanted: Wanted) -> Uncut:
    options, tokenizer = wanted.options, wanted.tokenizer
    if options.context.turns and examples.dialogues is not None:
        require(wanted.overflow, ("auto",), "rows with context: their farthest turns go first")
        scores = _scores(examples, wanted)
        return Contexts(examples, tokenizer, options.context, scores, with_kinds=wanted.has_token_types)
    if "pair" in examples.texts:
        require(wanted.overflow, ("auto",), "pairs: the longer text is cut first")
        return Pairs(
            examples.texts["text"], examples.texts["pair"], tokenizer, with_kinds=wanted.has_token_types
        )
    return _Texts(examples.texts["text"], wanted)


def _scores(examples: Examples, wanted: Wanted) -> Scores | None:
    retention = wanted.options.context.retention
    assert examples.dialogues is not None
    if retention == "tfidf":
        return TfIdf(examples.dialogues)
    assert retention == "nearest" or wanted.scores is not None, "attention scores come from the model"
    return wanted.scores if retention == "attention" else None


class _Texts:
    """Rows of one text each."""

    def __init__(self, texts: Sequence[str], wanted: Wanted) -> None:
        self.wanted = wanted
        self.rows = encode(texts, wanted.tokenizer, special_tokens=True)

    @property
    def lengths(self) -> Int64:
        return self.rows.lengths

    def fit(self, max_length: int) -> Fitted:
        tokenizer = self.wanted.tokenizer
        ends = Ends(opening=len(opening(tokenizer)), closing=len(closing(tokenizer)))
        return fit(self.rows, max_length, self.wanted.overflow, ends, self.wanted.options.window_stride)

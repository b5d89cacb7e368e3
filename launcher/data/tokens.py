"""All rows of a split as token ids in flat arrays, ready to be cut into batches."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.answers import join_answers
from launcher.data.blocks import join_blocks
from launcher.data.encode import closing, encode, truncate
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.ragged import Bool, Int32, Int64, Ragged, offsets_of


@dataclass(frozen=True, kw_only=True)
class TokenStore:
    """Rows of token ids, one after another.

    `labels` are class ids (classification). `trained` marks the ids that a language model learns to
    predict; None: all. `num_targets` of a row is what its loss is summed over: one for a labelled row,
    for a language model its trained ids without the first, which nothing predicts.
    """

    task: str
    input_ids: Int32
    offsets: Int64
    labels: Int64 | None
    trained: Bool | None
    num_targets: Int64
    max_length: int
    num_truncated: int = 0
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Rows."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int64:
        """Tokens in each row."""
        return np.diff(self.offsets)


def tokenise(
    examples: Examples,
    tokenizer: Any,
    *,
    options: DataOptions,
    task: str,
    template: str = "auto",
    limit: int | None = None,
) -> TokenStore:
    """Token ids of all rows, cut to `options.max_length` (or the model's `limit`, if that is less).

    Raises DataError when more than one row in a hundred keeps no answer, or the tokenizer has no end token.
    """
    max_length = min(options.max_length, limit or options.max_length)
    if task == "classification":
        return _classified(examples, tokenizer, max_length)
    if examples.layout == "instruction":
        return _answered(examples, tokenizer, template, max_length)
    return _blocks(examples, tokenizer, max_length)


def _classified(examples: Examples, tokenizer: Any, max_length: int) -> TokenStore:
    whole = encode(examples.texts["text"], tokenizer, special_tokens=True)
    rows, num_cut = truncate(whole, max_length, num_closing=len(closing(tokenizer)))
    labelled = 0 if examples.labels is None else 1
    return TokenStore(
        task="classification",
        input_ids=rows.values,
        offsets=rows.offsets,
        labels=examples.labels,
        trained=None,
        num_targets=np.full(len(examples), labelled, dtype=np.int64),
        max_length=max_length,
        num_truncated=num_cut,
        notices=_cut_notice(examples, num_cut, max_length, "their end"),
    )


def _answered(examples: Examples, tokenizer: Any, template: str, max_length: int) -> TokenStore:
    joined = join_answers(examples, tokenizer, template, max_length)
    cut = _cut_notice(examples, joined.num_truncated, max_length, "the beginning of the prompt")
    return _language(joined.rows, joined.trained, max_length, joined.num_truncated, (*joined.notices, *cut))


def _blocks(examples: Examples, tokenizer: Any, max_length: int) -> TokenStore:
    rows = join_blocks(examples, tokenizer, max_length)
    said = f"{examples.path.name}: {len(examples):,} documents, {len(rows.values):,} tokens, "
    said += f"{len(rows.offsets) - 1:,} blocks of {max_length} tokens"
    return _language(rows, None, max_length, 0, (said,))


def _language(
    rows: Ragged, trained: Bool | None, max_length: int, num_truncated: int, notices: tuple[str, ...]
) -> TokenStore:
    return TokenStore(
        task="causal_lm",
        input_ids=rows.values,
        offsets=rows.offsets,
        labels=None,
        trained=trained,
        num_targets=shifted_targets(rows.offsets, trained),
        max_length=max_length,
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


def _cut_notice(examples: Examples, num_cut: int, max_length: int, what: str) -> tuple[str, ...]:
    if not num_cut:
        return ()
    share = num_cut / len(examples)
    return (
        f"{examples.path.name}: {num_cut:,} of {len(examples):,} rows ({share:.1%}) are longer than "
        f"max_length {max_length} and lose {what}",
    )

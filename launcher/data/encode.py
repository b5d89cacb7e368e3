"""Texts to token ids in large batches, on all cores, without touching the tokenizer's own settings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from launcher.data.ragged import Int64, Ragged, positions

_TEXTS_PER_BATCH = 4096


def encode(texts: Sequence[str], tokenizer: Any, *, special_tokens: bool) -> Ragged:
    """Token ids of every text, whole: nothing is cut, nothing is padded."""
    starts = range(0, len(texts), _TEXTS_PER_BATCH)
    batches = (list(texts[start : start + _TEXTS_PER_BATCH]) for start in starts)
    return Ragged.join(_encode_batch(batch, tokenizer, special_tokens) for batch in batches)


def _encode_batch(texts: list[str], tokenizer: Any, special_tokens: bool) -> Ragged:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # a tokenizer written in Python
        encoded = tokenizer(texts, add_special_tokens=special_tokens, truncation=False, padding=False)
        return Ragged.from_lists(encoded["input_ids"])
    # The Rust call uses the state that the last caller left behind: cutting and padding are put back after.
    truncation, padding = backend.truncation, backend.padding
    backend.no_truncation()
    backend.no_padding()
    try:
        encodings = backend.encode_batch_fast(texts, add_special_tokens=special_tokens)
    finally:
        if truncation is not None:
            backend.enable_truncation(**truncation)
        if padding is not None:
            backend.enable_padding(**padding)
    return Ragged.from_lists([encoding.ids for encoding in encodings])


def opening(tokenizer: Any) -> list[int]:
    """The ids that the tokenizer puts in front of a text by itself (`<s>`, `[CLS]`), often none."""
    return _around(tokenizer)[0]


def closing(tokenizer: Any) -> list[int]:
    """The ids that the tokenizer puts behind a text by itself (`</s>`, `[SEP]`), often none."""
    return _around(tokenizer)[1]


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    bare = encode(["a"], tokenizer, special_tokens=False).values.tolist()
    full = encode(["a"], tokenizer, special_tokens=True).values.tolist()
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    raise AssertionError("the tokenizer changes a text's own tokens when it adds special ones")


def truncate(rows: Ragged, max_length: int, *, num_closing: int) -> tuple[Ragged, int]:
    """Rows of at most `max_length` ids, and how many were cut. The last `num_closing` ids are kept."""
    lengths = rows.lengths
    kept = np.minimum(lengths, max_length)
    num_cut = int((lengths > kept).sum())
    if not num_cut:
        return rows, 0
    return Ragged.of(rows.values[_kept_positions(rows, kept, num_closing)], kept), num_cut


def _kept_positions(rows: Ragged, kept: Int64, num_closing: int) -> Int64:
    within = positions(np.zeros_like(kept), kept)
    tail = within >= np.repeat(kept - num_closing, kept)
    skipped = np.repeat(rows.lengths - kept, kept)
    return np.repeat(rows.starts, kept) + within + np.where(tail, skipped, 0)

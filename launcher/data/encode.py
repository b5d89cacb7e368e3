"""Texts to token ids in large batches, on all cores, without touching the tokenizer's own settings."""

from collections.abc import Sequence
from typing import Any

from launcher.data.progress import report
from launcher.data.ragged import Ragged

_TEXTS_PER_BATCH = 4096


def encode(texts: Sequence[str], tokenizer: Any, *, special_tokens: bool) -> Ragged:
    """Token ids of every text, whole: nothing is cut, nothing is padded."""
    starts = range(0, len(texts), _TEXTS_PER_BATCH)
    batches = (list(texts[start : start + _TEXTS_PER_BATCH]) for start in starts)
    return Ragged.join(_encode_batch(batch, tokenizer, special_tokens) for batch in batches)


def _encode_batch(texts: list[str] | list[tuple[str, str]], tokenizer: Any, special_tokens: bool) -> Ragged:
    report(len(texts))
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:  # a tokenizer written in Python
        columns = list(zip(*texts, strict=True)) if isinstance(texts[0], tuple) else [texts]
        texts_of = [list(column) for column in columns]
        encoded = tokenizer(*texts_of, add_special_tokens=special_tokens, truncation=False, padding=False)
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


def encode_pair(first: str, second: str, tokenizer: Any) -> list[int]:
    """The ids of two texts as one row, with the tokenizer's own special ids."""
    ids: list[int] = _encode_batch([(first, second)], tokenizer, True).values.tolist()
    return ids

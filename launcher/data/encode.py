"""Texts to token ids in batches, on all cores, without touching the tokenizer's own settings."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from launcher.data.progress import report
from launcher.data.ragged import Ragged

_TEXTS_PER_BATCH, _CHARACTERS_PER_BATCH = 512, 2**18
_AHEAD = 2


def encode(texts: Sequence[str], tokenizer: Any, *, special_tokens: bool) -> Ragged:
    """Token ids of every text, whole: nothing is cut, nothing is padded."""
    with _uncut(tokenizer) as backend:
        if backend is None:  # a tokenizer written in Python
            settings = {"add_special_tokens": special_tokens, "truncation": False, "padding": False}
            return Ragged.join(
                Ragged.from_lists(tokenizer(batch, **settings)["input_ids"]) for batch in _batches(texts)
            )

        def tokenised(batch: list[str]) -> list[Any]:
            found: list[Any] = backend.encode_batch_fast(batch, add_special_tokens=special_tokens)
            return found

        return Ragged.join(
            Ragged.from_lists([encoding.ids for encoding in encodings])
            for encodings in _ahead(tokenised, _batches(texts))
        )


def _ahead(tokenised: Callable[[list[str]], list[Any]], batches: Iterator[list[str]]) -> Iterator[list[Any]]:
    """Every batch tokenised, in order; the next ones already are while the caller is at work on one.

    Rust needs no lock of Python's while it tokenises. A single batch is not worth a thread.
    """
    first, second = next(batches, None), next(batches, None)
    if first is None:
        return
    if second is None:
        yield tokenised(first)
        return
    waiting = deque[Future[list[Any]]]()
    with ThreadPoolExecutor(_AHEAD) as pool:
        waiting.extend(pool.submit(tokenised, batch) for batch in (first, second))
        while waiting:
            done = waiting.popleft().result()
            if (batch := next(batches, None)) is not None:
                waiting.append(pool.submit(tokenised, batch))
            yield done


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in lists that are neither many nor long."""
    for start in range(0, len(texts), _TEXTS_PER_BATCH):
        batch, size = list[str](), 0
        for text in texts[start : start + _TEXTS_PER_BATCH]:
            if batch and size + len(text) > _CHARACTERS_PER_BATCH:
                report(len(batch))
                yield batch
                batch, size = [], 0
            batch.append(text)
            size += len(text)
        if batch:
            report(len(batch))
            yield batch


@contextmanager
def _uncut(tokenizer: Any) -> Iterator[Any]:
    """The tokenizer's Rust part, if it has one, as if nobody had switched on cutting and padding.

    It uses the state that the last caller left behind, which is put back after.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        yield None
        return
    truncation, padding = backend.truncation, backend.padding
    backend.no_truncation()
    backend.no_padding()
    try:
        yield backend
    finally:
        if truncation is not None:
            backend.enable_truncation(**truncation)
        if padding is not None:
            backend.enable_padding(**padding)


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


def encode_pair(first: str, second: str, tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids of two texts as one row, with the tokenizer's own special ids, and their token types."""
    with _uncut(tokenizer) as backend:
        if backend is not None:
            encoding = backend.encode(first, second, add_special_tokens=True)
            return list(encoding.ids), list(encoding.type_ids)
    encoded = tokenizer(first, second, add_special_tokens=True, return_token_type_ids=True)
    ids = list(encoded["input_ids"])
    return ids, list(encoded.get("token_type_ids", [0] * len(ids)))

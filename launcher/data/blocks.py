"""Plain text for a language model: documents joined by the end token and cut into equal blocks."""

from typing import Any

import numpy as np

from launcher.data.answers import end_token
from launcher.data.encode import encode, opening
from launcher.data.examples import Examples
from launcher.data.number_file import NumberWriter
from launcher.data.ragged import Int32, Ragged, offsets_of, positions


def join_blocks(examples: Examples, tokenizer: Any, max_length: int) -> Ragged:
    """Blocks of `max_length` ids; the last one is shorter, and left out if it is a single id."""
    writer, total = NumberWriter(np.int32), 0
    for block in examples.blocks():
        part = _stream(block, tokenizer)
        writer.add(part)
        total += len(part)
    stream = writer.done()
    starts = np.arange(0, total, max_length, dtype=np.int64)
    lengths = np.minimum(max_length, total - starts)
    if len(lengths) > 1 and lengths[-1] < 2:
        stream, lengths = stream[:-1], lengths[:-1]
    return Ragged.of(stream, lengths)


def _stream(examples: Examples, tokenizer: Any) -> Int32:
    first = np.asarray(opening(tokenizer), dtype=np.int32)
    documents = encode(examples.texts["text"], tokenizer, special_tokens=False)
    lengths = documents.lengths + len(first) + 1
    stream = np.full(int(lengths.sum()), end_token(tokenizer), dtype=np.int32)
    starts = offsets_of(lengths)[:-1]
    opened = np.full(len(lengths), len(first), dtype=np.int64)
    stream[positions(starts, opened)] = np.tile(first, len(lengths))
    stream[positions(starts + len(first), documents.lengths)] = documents.values
    return stream

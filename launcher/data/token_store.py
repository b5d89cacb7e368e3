"""Rows of token ids in flat arrays, ready to be cut into batches."""

from dataclasses import dataclass

import numpy as np

from launcher.data.lengths import Length
from launcher.data.number_file import NumberWriter, forget
from launcher.data.ragged import BLOCK_ROWS, Bool, Float32, Int8, Int32, Int64, Ragged, offsets_of, positions


@dataclass(frozen=True, kw_only=True)
class TokenStore:
    """Rows of token ids, one after another.

    `labels` are class ids, 0/1 of every class (float32[rows, classes]), or numbers (float32[rows]).
    `trained` marks the ids that a language model learns to predict; None: all. `num_targets` of a row is
    what its loss is summed over: one for a labelled row (of a set, one a class); for a language model its
    trained ids without the first, which nothing predicts.
    `sources`: the row of the file that each row is a window of, from 0 without gaps; None: each its own.
    `segments`: where each packed sample starts in `input_ids`, and the end of the last; None: not packed.
    `token_types` (int8[tokens]): which text of a pair each id belongs to, for models that learn that; None:
    all are of the first.
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
    token_types: Int8 | None = None

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


def shifted_targets(offsets: Int64, trained: Bool | None) -> Int64:
    """Targets of each row after the shift by one: its trained ids, never counting the row's first id."""
    if trained is None:
        shorter: Int64 = np.maximum(np.diff(offsets) - 1, 0)
        return shorter
    parts = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(offsets) - 1, BLOCK_ROWS):
        bounds = offsets[start : start + BLOCK_ROWS + 1]
        counted = trained[bounds[0] : bounds[-1]].astype(np.int64)
        counted[(bounds[:-1] - bounds[0])[np.diff(bounds) > 0]] = 0
        before = offsets_of(counted)[bounds - bounds[0]]
        parts.append(np.diff(before))
        forget(trained)
    return np.concatenate(parts)


def marks_of(rows: Ragged, marks: Bool, taken: Int64) -> Bool:
    """The marks of those rows, in that order; `marks`: one of every id of all rows."""
    writer = NumberWriter(np.bool_)
    for start in range(0, len(taken), BLOCK_ROWS):
        some = taken[start : start + BLOCK_ROWS]
        writer.add(marks[positions(rows.offsets[some], rows.offsets[some + 1] - rows.offsets[some])])
        forget(marks)
    found: Bool = writer.done()
    return found

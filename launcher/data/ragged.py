"""Rows of unequal length in two flat arrays: the values one after another, and where each row starts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from launcher.data.number_file import NumberWriter, forget

BLOCK_ROWS = 8192
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Lengths = Int32 | Int64


def offsets_of(lengths: Lengths) -> Int64:
    """Where each row starts, and the end of the last: int64[rows + 1]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def positions(starts: Int64, lengths: Int64) -> Int64:
    """The flat positions of rows that begin at `starts`, one row after another, without a loop."""
    shifts = starts - offsets_of(lengths)[:-1]
    return np.repeat(shifts, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Ragged:
    """`values` of all rows, `offsets` of rows + 1 entries."""

    values: Int32
    offsets: Int64

    @classmethod
    def of(cls, values: Int32, lengths: Lengths) -> "Ragged":
        """From the flat values and the rows' lengths."""
        return cls(values=values, offsets=offsets_of(lengths))

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]]) -> "Ragged":
        """From one list a row."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = chain.from_iterable(rows)
        return cls.of(np.fromiter(flat, dtype=np.int32, count=int(lengths.sum())), lengths)

    @classmethod
    def join(cls, parts: Iterable["Ragged"]) -> "Ragged":
        """The rows of all parts, in order; in a file where they are many."""
        values, lengths = NumberWriter(np.int32), NumberWriter(np.int32)
        for part in parts:
            values.add(part.values)
            lengths.add(part.lengths)
        return cls.of(values.done(), lengths.done())

    @property
    def lengths(self) -> Int64:
        """Values in each row."""
        return np.diff(self.offsets)

    @property
    def starts(self) -> Int64:
        """Where each row begins in `values`."""
        return self.offsets[:-1]

    def take(self, rows: Int64) -> "Ragged":
        """Those rows only, in that order."""
        if len(rows) > BLOCK_ROWS:
            starts = range(0, len(rows), BLOCK_ROWS)
            return Ragged.join(self.take(rows[start : start + BLOCK_ROWS]) for start in starts)
        starts_of, lengths = self.offsets[rows], self.offsets[rows + 1] - self.offsets[rows]
        return Ragged.of(self.values[positions(starts_of, lengths)], lengths)

    def blocks(self) -> Iterator[tuple[int, "Ragged"]]:
        """(first row, rows) of at most `BLOCK_ROWS`: positions take more memory than the ids themselves.

        What lies in a file leaves memory behind each block.
        """
        for start in range(0, len(self.offsets) - 1, BLOCK_ROWS):
            offsets = self.offsets[start : start + BLOCK_ROWS + 1]
            yield start, Ragged(values=self.values[offsets[0] : offsets[-1]], offsets=offsets - offsets[0])
            forget(self.values)


def same_in_every_row(ids: Sequence[int], num_rows: int) -> Ragged:
    """The same few values in each of `num_rows` rows."""
    values = np.tile(np.asarray(ids, dtype=np.int32), num_rows)
    return Ragged.of(values, np.full(num_rows, len(ids), dtype=np.int64))


def side_by_side(parts: Sequence[Ragged]) -> Ragged:
    """Row n of every part, one behind the other, as row n. All parts have the same number of rows."""
    lengths: Int64 = np.asarray(np.sum([part.lengths for part in parts], axis=0, dtype=np.int64))
    values = np.empty(int(lengths.sum()), dtype=np.int32)
    places = offsets_of(lengths)[:-1]
    for part in parts:
        values[positions(places, part.lengths)] = part.values
        places = places + part.lengths
    return Ragged.of(values, lengths)

"""What happens to rows that are too long: their head, their tail or both stay, windows, or they go.

The ids that the tokenizer puts in front of and behind a text stay in every case.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from launcher.data.options import Overflow
from launcher.data.ragged import Int8, Int64, Ragged, positions
from launcher.errors import BadValue, Problem


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Rows that fit. `sources`: the given row behind each, None where row n is still row n.

    `num_long`: rows that were too long. `notice`: what became of them, for a message. `kinds`: the token
    type of every id, where rows are of two texts.
    """

    rows: Ragged
    sources: Int64 | None
    num_long: int
    notice: str
    kinds: Int8 | None = None


@dataclass(frozen=True, kw_only=True)
class Ends:
    """How many ids the tokenizer itself puts in front of a text and behind it."""

    opening: int
    closing: int


def fit(rows: Ragged, max_length: int, policy: Overflow, ends: Ends, stride: int | None = None) -> Fitted:
    """The rows, none longer than `max_length`. `stride` in tokens: from a window's start to the next.

    Raises BadValue where no length is left for the text.
    """
    long = rows.lengths > max_length
    num_long = int(long.sum())
    if not num_long:
        return Fitted(rows=rows, sources=None, num_long=0, notice="")
    if policy == "drop":
        return drop(rows, max_length)
    require_room(max_length, ends.opening + ends.closing)
    if policy == "windows":
        cut, sources = windows(rows, max_length, ends, stride)
        said = f"become {len(sources) - len(rows.lengths) + num_long:,} windows"
        return Fitted(rows=cut, sources=sources, num_long=num_long, notice=said)
    head, lost = _head(policy, max_length, ends)
    cut = Ragged.join(_shortened(block, max_length, head) for _, block in rows.blocks())
    return Fitted(rows=cut, sources=None, num_long=num_long, notice=f"lose {lost}")


def require_room(max_length: int, num_own: int) -> None:
    """Raises BadValue where the tokenizer's own ids alone fill a row: nothing of the text would be left."""
    if max_length > num_own:
        return
    raise BadValue(
        Problem(
            what=f"data.max_length: {max_length} leaves no token for the text beside the tokenizer's own "
            f"{num_own}",
            right=f"at least {num_own + 1}, better the length of most rows",
            type="max_length={percentile: 95, cap: 512}",
        )
    )


def drop(rows: Ragged, max_length: int) -> Fitted:
    """Only the rows that fit. Raises BadValue where none does."""
    long = rows.lengths > max_length
    if not long.any():
        return Fitted(rows=rows, sources=None, num_long=0, notice="")
    kept = np.flatnonzero(~long).astype(np.int64)
    if not len(kept):
        raise BadValue(
            Problem(
                where="data.overflow",
                what=f"drop leaves no row: each of the {len(long):,} is longer than max_length {max_length}",
                right="a length that most rows have",
                type=f"data.max_length={int(rows.lengths.max())} (the longest row), or data.overflow=auto",
            )
        )
    return Fitted(rows=rows.take(kept), sources=kept, num_long=int(long.sum()), notice="are left out")


def _head(policy: Overflow, max_length: int, ends: Ends) -> tuple[int, str]:
    """How many of the kept ids come from the row's beginning, and what is lost."""
    if policy == "keep_tail":
        return min(ends.opening, max_length), "their beginning"
    if policy == "keep_head_tail":
        room = max(0, max_length - ends.opening - ends.closing)
        return ends.opening + (room + 1) // 2, "their middle"
    return max_length - ends.closing, "their end"


def _shortened(rows: Ragged, max_length: int, head: int) -> Ragged:
    kept = np.minimum(rows.lengths, max_length)
    within = positions(np.zeros_like(kept), kept)
    skipped = np.repeat(rows.lengths - kept, kept)
    index = np.repeat(rows.starts, kept) + within + np.where(within >= head, skipped, 0)
    return Ragged.of(rows.values[index], kept)


def windows(rows: Ragged, max_length: int, ends: Ends, stride: int | None) -> tuple[Ragged, Int64]:
    """Every row as overlapping pieces of at most `max_length` ids, and each piece's row.

    Pieces start `stride` ids apart (at most a piece's room, so that no id is left out; half of it where
    None); the last one is moved back to be full. Each has the opening and closing ids of the whole.
    """
    sources = [np.zeros(0, dtype=np.int64)]

    def parts() -> Iterator[Ragged]:
        for start, block in rows.blocks():
            part, rows_of = _windows(block, max_length, ends, stride)
            sources.append(start + rows_of)
            yield part

    return Ragged.join(parts()), np.concatenate(sources)


def _windows(rows: Ragged, max_length: int, ends: Ends, stride: int | None) -> tuple[Ragged, Int64]:
    room = max_length - ends.opening - ends.closing
    step = min(stride or max(1, room // 2), room)
    bodies = rows.lengths - ends.opening - ends.closing
    beyond = np.maximum(bodies - room, 0)
    counts = 1 + -(-beyond // step)
    sources = np.repeat(np.arange(len(bodies), dtype=np.int64), counts)
    number = positions(np.zeros_like(counts), counts)
    shift = np.minimum(number * step, beyond[sources])
    kept = np.minimum(rows.lengths, max_length)[sources]
    return _pieces(rows, sources, shift, kept, ends), sources


def _pieces(rows: Ragged, sources: Int64, shift: Int64, kept: Int64, ends: Ends) -> Ragged:
    within = positions(np.zeros_like(kept), kept)
    is_tail = within >= np.repeat(kept - ends.closing, kept)
    moved = np.where(within < ends.opening, 0, np.repeat(shift, kept))
    moved = np.where(is_tail, np.repeat(rows.lengths[sources] - kept, kept), moved)
    return Ragged.of(rows.values[np.repeat(rows.starts[sources], kept) + within + moved], kept)

"""Two texts as one row, as the tokenizer itself joins a pair; cut, the longer text loses its end first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.encode import encode, encode_pair
from launcher.data.number_file import NumberWriter
from launcher.data.overflow import Fitted, require_room
from launcher.data.ragged import Int8, Int64, Ragged, positions, same_in_every_row, side_by_side


@dataclass(frozen=True, kw_only=True)
class Around:
    """The ids that a tokenizer puts in front of a pair, between its texts, and behind it.

    `kinds`: what a BERT learns of each by, its token type: in front, first text, between, second text,
    behind. Of BERT 0 up to the first [SEP] and 1 after it.
    """

    in_front: list[int]
    between: list[int]
    behind: list[int]
    kinds: tuple[list[int], list[int], list[int], list[int], list[int]]

    @property
    def num_ids(self) -> int:
        """Ids beside those of the texts."""
        return len(self.in_front) + len(self.between) + len(self.behind)


def around_pairs(tokenizer: Any) -> Around:
    """Found by looking at a pair of equal texts."""
    bare = encode(["a"], tokenizer, special_tokens=False).values.tolist()
    full, kinds = encode_pair("a", "a", tokenizer)
    size = len(bare)
    places = [start for start in range(len(full) - size + 1) if full[start : start + size] == bare]
    first, second = places[0], places[-1]
    borders = (0, first, first + size, second, second + size, len(full))
    parts = [slice(start, stop) for start, stop in zip(borders, borders[1:], strict=False)]
    a, b, c, d, e = (kinds[part] for part in parts)
    return Around(
        in_front=full[parts[0]], between=full[parts[2]], behind=full[parts[4]], kinds=(a, b[:1], c, d[:1], e)
    )


class Pairs:
    """Rows of two texts, not joined yet."""

    def __init__(
        self, firsts: Sequence[str], seconds: Sequence[str], tokenizer: Any, *, with_kinds: bool = False
    ) -> None:
        """Both columns become ids here, uncut. `with_kinds`: `fit` gives token types too."""
        self.with_kinds = with_kinds
        self.firsts = encode(firsts, tokenizer, special_tokens=False)
        self.seconds = encode(seconds, tokenizer, special_tokens=False)
        self.around = around_pairs(tokenizer)

    @property
    def lengths(self) -> Int64:
        """Ids of each uncut row."""
        return self.firsts.lengths + self.seconds.lengths + self.around.num_ids

    def fit(self, max_length: int) -> Fitted:
        """Joined rows. Of a long one the longer text loses its end first, then both do."""
        num_long = int((self.lengths > max_length).sum())
        if num_long:
            require_room(max_length, self.around.num_ids)
        kinds = NumberWriter(np.int8)

        def parts() -> Iterator[Ragged]:
            blocks = zip(self.firsts.blocks(), self.seconds.blocks(), strict=True)
            for (_, firsts), (_, seconds) in blocks:
                heads = self._heads(firsts, seconds, max_length)
                if self.with_kinds:
                    kinds.add(self._kinds(*heads))
                yield self._joined(*heads)

        rows = Ragged.join(parts())
        said = "lose the end of their longer text"
        found = kinds.done() if self.with_kinds else None
        return Fitted(rows=rows, sources=None, num_long=num_long, notice=said, kinds=found)

    def _heads(self, firsts: Ragged, seconds: Ragged, max_length: int) -> tuple[Ragged, Ragged]:
        room = max(2, max_length - self.around.num_ids)
        first, second = firsts.lengths, seconds.lengths
        first_kept = np.minimum(first, np.maximum(room - room // 2, room - second))
        second_kept = np.minimum(second, room - first_kept)
        return _beginnings(firsts, first_kept), _beginnings(seconds, second_kept)

    def _joined(self, first: Ragged, second: Ragged) -> Ragged:
        around, number = self.around, len(first.lengths)
        ids = (around.in_front, around.between, around.behind)
        in_front, between, behind = (same_in_every_row(each, number) for each in ids)
        return side_by_side([in_front, first, between, second, behind])

    def _kinds(self, first: Ragged, second: Ragged) -> Int8:
        """The token type of every id of the joined rows."""
        in_front, of_first, between, of_second, behind = self.around.kinds
        number = len(first.lengths)
        parts = [
            same_in_every_row(in_front, number),
            _filled(of_first, first),
            same_in_every_row(between, number),
            _filled(of_second, second),
            same_in_every_row(behind, number),
        ]
        return side_by_side(parts).values.astype(np.int8)


def _beginnings(rows: Ragged, kept: Int64) -> Ragged:
    return Ragged.of(rows.values[positions(rows.starts, kept)], kept)


def _filled(kind: list[int], rows: Ragged) -> Ragged:
    """Rows of the same lengths that hold one number."""
    return Ragged(
        values=np.full(len(rows.values), kind[0] if kind else 0, dtype=np.int32), offsets=rows.offsets
    )

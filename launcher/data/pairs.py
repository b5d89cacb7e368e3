"""Two texts as one row, as the tokenizer itself joins a pair; cut, the longer text loses its end first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from launcher.data.encode import encode, encode_pair
from launcher.data.overflow import Fitted
from launcher.data.ragged import Int64, Ragged, positions, same_in_every_row, side_by_side

Around = tuple[list[int], list[int], list[int]]


def around_pairs(tokenizer: Any) -> Around:
    """The ids that the tokenizer puts in front of a pair, between its texts, and behind it."""
    bare = encode(["a"], tokenizer, special_tokens=False).values.tolist()
    full, size = encode_pair("a", "a", tokenizer), len(bare)
    places = [start for start in range(len(full) - size + 1) if full[start : start + size] == bare]
    first, second = places[0], places[-1]
    return full[:first], full[first + size : second], full[second + size :]


class Pairs:
    """Rows of two texts, not joined yet."""

    def __init__(self, firsts: Sequence[str], seconds: Sequence[str], tokenizer: Any) -> None:
        """Both columns become ids here, uncut."""
        self.firsts = encode(firsts, tokenizer, special_tokens=False)
        self.seconds = encode(seconds, tokenizer, special_tokens=False)
        self.around = around_pairs(tokenizer)
        self.num_special = sum(map(len, self.around))

    @property
    def lengths(self) -> Int64:
        """Ids of each uncut row."""
        return self.firsts.lengths + self.seconds.lengths + self.num_special

    def fit(self, max_length: int) -> Fitted:
        """Joined rows. Of a long one the longer text loses its end first, then both do."""
        room = max(2, max_length - self.num_special)
        first, second = self.firsts.lengths, self.seconds.lengths
        first_kept = np.minimum(first, np.maximum(room - room // 2, room - second))
        second_kept = np.minimum(second, room - first_kept)
        num_rows = len(first)
        in_front, between, behind = (same_in_every_row(ids, num_rows) for ids in self.around)
        heads = _heads(self.firsts, first_kept), _heads(self.seconds, second_kept)
        return Fitted(
            rows=side_by_side([in_front, heads[0], between, heads[1], behind]),
            sources=None,
            num_long=int((self.lengths > max_length).sum()),
            notice="lose the end of their longer text",
        )


def _heads(rows: Ragged, kept: Int64) -> Ragged:
    return Ragged.of(rows.values[positions(rows.starts, kept)], kept)

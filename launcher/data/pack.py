"""Several samples in one row: which go together, and where documents that are too long are cut."""

from typing import Any

import numpy as np

from launcher.data.answers import end_token
from launcher.data.encode import encode, opening
from launcher.data.examples import Examples
from launcher.data.ragged import Int64, Ragged, same_in_every_row, side_by_side

_AT_ONCE = 2**16


def best_fit_decreasing(lengths: Int64, capacity: int) -> tuple[Int64, Int64]:
    """(samples bin after bin, samples in each bin): the longest first, each where least room is left over.

    Best-fit decreasing needs at most 11/9 of the fewest bins plus one (Johnson, 1974). Rooms are kept as
    bits of one number, so that the smallest room that is enough is found without a search.
    """
    assert not len(lengths) or int(lengths.max()) <= capacity, "a sample is longer than a row"
    with_room: list[list[int]] = [[] for _ in range(capacity + 1)]
    rooms = num_bins = 0
    order = np.argsort(-lengths, kind="stable")
    bins = np.empty(len(order), dtype=np.int64)  # of each sample in that order
    for start in range(0, len(order), _AT_ONCE):
        chosen = list[int]()
        for length in lengths[order[start : start + _AT_ONCE]].tolist():
            enough = rooms >> length
            room, number = capacity, num_bins
            if enough:
                room = length + (enough & -enough).bit_length() - 1
                number = with_room[room].pop()
                rooms &= ~((not with_room[room]) << room)
            else:
                num_bins += 1
            chosen.append(number)
            left = room - length
            with_room[left].append(number)
            rooms |= 1 << left
        bins[start : start + len(chosen)] = chosen
    flat = order[np.argsort(bins, kind="stable")].astype(np.int64)
    return flat, np.bincount(bins, minlength=num_bins).astype(np.int64)


def pieces(examples: Examples, tokenizer: Any, max_length: int) -> Ragged:
    """Documents as samples: each with its end token, a longer one in several pieces of `max_length` ids.

    A last piece of a single id is left out: nothing would predict it.
    """
    return Ragged.join(_pieces(block, tokenizer, max_length) for block in examples.blocks())


def _pieces(examples: Examples, tokenizer: Any, max_length: int) -> Ragged:
    documents = encode(examples.texts["text"], tokenizer, special_tokens=False)
    num = len(documents.lengths)
    parts = [same_in_every_row(opening(tokenizer), num), documents]
    whole = side_by_side([*parts, same_in_every_row([end_token(tokenizer)], num)])
    counts = -(-whole.lengths // max_length)
    rests = whole.lengths - (counts - 1) * max_length
    lengths = np.full(int(counts.sum()), max_length, dtype=np.int64)
    lengths[np.cumsum(counts) - 1] = rests
    cut = Ragged.of(whole.values, lengths)
    return cut.take(np.flatnonzero(lengths > 1).astype(np.int64))

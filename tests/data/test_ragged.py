"""Rows of unequal length in flat arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.ragged import Ragged

ROWS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8)


def lists_of(ragged: Ragged) -> list[list[int]]:
    return (
        [part.tolist() for part in np.split(ragged.values, ragged.offsets[1:-1])]
        if len(ragged.lengths)
        else []
    )


@given(rows=ROWS)
def test_rows_come_back_as_they_were(rows):
    ragged = Ragged.from_lists(rows)
    assert lists_of(ragged) == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]


@given(rows=ROWS.filter(len), data=st.data())
def test_take_gives_any_rows_in_any_order(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
    taken = Ragged.from_lists(rows).take(np.array(chosen, dtype=np.int64))
    assert lists_of(taken) == [rows[row] for row in chosen]


@given(parts=st.lists(ROWS, max_size=4))
def test_joined_parts_are_their_rows_in_order(parts):
    joined = Ragged.join(Ragged.from_lists(part) for part in parts)
    assert lists_of(joined) == [row for part in parts for row in part]

"""Rows that are too long: what is kept of them, by hand and by the tokenizer's own truncation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.encode import encode
from launcher.data.options import Overflow
from launcher.data.overflow import Ends, fit, windows
from launcher.data.ragged import Ragged
from launcher.errors import BadValue

ENDS = Ends(opening=1, closing=1)


def rows_of(ragged: Ragged) -> list[list[int]]:
    return [ragged.take(np.array([row])).values.tolist() for row in range(len(ragged.offsets) - 1)]


def made(*bodies: int) -> Ragged:
    """Rows 100, 1, 2, ..., 200."""
    return Ragged.from_lists([[100, *range(1, body + 1), 200] for body in bodies])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("auto", [100, 1, 2, 3, 4, 200]),
        ("keep_head", [100, 1, 2, 3, 4, 200]),
        ("keep_tail", [100, 6, 7, 8, 9, 200]),
        ("keep_head_tail", [100, 1, 2, 8, 9, 200]),
    ],
)
def test_what_is_kept(policy: str, expected: list[int]) -> None:
    fitted = fit(made(9, 2), 6, policy, ENDS)
    assert rows_of(fitted.rows) == [expected, [100, 1, 2, 200]]
    assert (fitted.num_long, fitted.sources) == (1, None)


def test_an_odd_room_gives_the_head_one_more() -> None:
    assert rows_of(fit(made(9), 7, "keep_head_tail", ENDS).rows) == [[100, 1, 2, 3, 8, 9, 200]]


@pytest.mark.parametrize("policy", ["keep_head", "keep_tail", "keep_head_tail", "windows"])
def test_a_length_without_room_for_text_is_refused(policy: Overflow) -> None:
    with pytest.raises(BadValue, match="2 leaves no token for the text"):
        fit(made(5), 2, policy, ENDS)
    assert fit(made(0), 2, policy, ENDS).num_long == 0


def test_dropped_rows_are_named() -> None:
    fitted = fit(made(9, 2, 8), 6, "drop", ENDS)
    assert rows_of(fitted.rows) == [[100, 1, 2, 200]]
    assert (fitted.num_long, fitted.sources.tolist(), fitted.notice) == (2, [1], "are left out")


def test_windows_by_hand_the_last_one_is_full() -> None:
    cut, sources = windows(made(9, 2), 6, ENDS, 3)
    assert rows_of(cut) == [
        [100, 1, 2, 3, 4, 200],
        [100, 4, 5, 6, 7, 200],
        [100, 6, 7, 8, 9, 200],
        [100, 1, 2, 200],
    ]
    assert sources.tolist() == [0, 0, 0, 1]


@given(
    bodies=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    room=st.integers(1, 12),
    stride=st.one_of(st.none(), st.integers(1, 50)),
)
def test_windows_leave_no_id_out_and_never_cross_rows(
    bodies: list[int], room: int, stride: int | None
) -> None:
    rows = made(*bodies)
    cut, sources = windows(rows, room + 2, ENDS, stride)
    seen: dict[int, set[int]] = {}
    for window, source in zip(rows_of(cut), sources.tolist(), strict=True):
        assert len(window) <= room + 2 and (window[0], window[-1]) == (100, 200)
        seen.setdefault(source, set()).update(window[1:-1])
    assert seen == {row: set(range(1, body + 1)) for row, body in enumerate(bodies)}


@pytest.mark.parametrize("max_length", [3, 4, 5, 9, 50])
def test_kept_heads_are_those_of_the_tokenizers_own_truncation(word_tokenizer, max_length):
    texts = ["the cat sat on the mat .", "", "not good", "the unseen cat !"] * 3
    whole = encode(texts, word_tokenizer, special_tokens=True)
    fitted = fit(whole, max_length, "keep_head", ENDS)
    expected = word_tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    word_tokenizer.backend_tokenizer.no_truncation()
    assert rows_of(fitted.rows) == expected
    assert fitted.num_long == int((whole.lengths > max_length).sum())


@pytest.mark.parametrize("max_length", [3, 4, 5, 9])
def test_kept_tails_are_those_of_the_tokenizers_own_truncation(word_tokenizer, max_length):
    texts = ["the cat sat on the mat .", "", "not good"]
    fitted = fit(encode(texts, word_tokenizer, special_tokens=True), max_length, "keep_tail", ENDS)
    word_tokenizer.truncation_side = "left"
    expected = word_tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    word_tokenizer.truncation_side = "right"
    word_tokenizer.backend_tokenizer.no_truncation()
    assert rows_of(fitted.rows) == expected


@pytest.mark.parametrize("policy", ["keep_head", "keep_tail", "keep_head_tail", "windows"])
def test_many_rows_are_cut_block_by_block_to_the_same(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = made(*range(1, 30))
    whole = fit(rows, 9, policy, ENDS)
    monkeypatch.setattr("launcher.data.ragged.BLOCK_ROWS", 4)
    parts = fit(rows, 9, policy, ENDS)
    assert rows_of(parts.rows) == rows_of(whole.rows)
    assert (parts.sources is None) == (whole.sources is None)
    assert parts.sources is None or parts.sources.tolist() == whole.sources.tolist()

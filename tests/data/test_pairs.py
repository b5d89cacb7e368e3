"""Two texts as one row are what the tokenizer makes of a pair."""

import numpy as np
import pytest

from launcher.data.pairs import Pairs, around_pairs
from launcher.data.ragged import Ragged

FIRSTS = ["the cat sat on the mat", "good", "", "a dog"]
SECONDS = ["not good", "the dog was very funny and good .", "a cat", "a cat sat on a mat"]


def rows_of(ragged: Ragged) -> list[list[int]]:
    return [ragged.take(np.array([row])).values.tolist() for row in range(len(ragged.offsets) - 1)]


@pytest.mark.parametrize("name", ["minilm_tokenizer", "word_tokenizer", "begin_tokenizer", "plain_tokenizer"])
def test_uncut_rows_are_the_tokenizers_own(name, request):
    tokenizer = request.getfixturevalue(name)
    pairs = Pairs(FIRSTS, SECONDS, tokenizer)
    expected = tokenizer(FIRSTS, SECONDS)["input_ids"]
    assert rows_of(pairs.fit(500).rows) == expected
    assert pairs.lengths.tolist() == list(map(len, expected))


@pytest.mark.parametrize("max_length", range(5, 16))
def test_long_pairs_lose_the_end_of_the_longer_text_first(minilm_tokenizer, max_length):
    pairs = Pairs(FIRSTS, SECONDS, minilm_tokenizer)
    fitted = pairs.fit(max_length)
    expected = minilm_tokenizer(FIRSTS, SECONDS, truncation="longest_first", max_length=max_length)[
        "input_ids"
    ]
    minilm_tokenizer.backend_tokenizer.no_truncation()
    found = rows_of(fitted.rows)
    assert list(map(len, found)) == list(map(len, expected))
    assert fitted.num_long == int((pairs.lengths > max_length).sum())
    for row, theirs in zip(found, expected, strict=True):  # a room that is odd may go to either text
        assert abs(row.index(102) - theirs.index(102)) <= 1


def test_what_stands_around_a_pair(minilm_tokenizer):
    found = around_pairs(minilm_tokenizer)
    assert (found.in_front, found.between, found.behind) == ([101], [102], [102])
    assert found.kinds == ([0], [0], [0], [1], [1])

"""Texts to ids, whole and fast, with the tokenizer left as it was."""

from typing import Any

import numpy as np
import pytest

from launcher.data.encode import closing, encode, opening
from launcher.data.progress import reporting_to
from launcher.data.ragged import Ragged

TEXTS = ["the cat sat on the mat .", "", "not good", "the unseen cat !"] * 3


def rows_of(ragged: Ragged) -> list[list[int]]:
    return [ragged.take(np.array([row])).values.tolist() for row in range(len(ragged.offsets) - 1)]


@pytest.mark.parametrize("special_tokens", [True, False])
@pytest.mark.parametrize("name", ["word_tokenizer", "plain_tokenizer", "begin_tokenizer", "chat_tokenizer"])
def test_ids_are_those_of_the_tokenizers_own_call(name, special_tokens, request):
    tokenizer = request.getfixturevalue(name)
    expected = tokenizer(TEXTS, add_special_tokens=special_tokens)["input_ids"]
    assert rows_of(encode(TEXTS, tokenizer, special_tokens=special_tokens)) == expected


def test_many_batches_join_in_order(word_tokenizer, monkeypatch):
    whole = encode(TEXTS, word_tokenizer, special_tokens=True)
    monkeypatch.setattr("launcher.data.encode._TEXTS_PER_BATCH", 5)
    parts = encode(TEXTS, word_tokenizer, special_tokens=True)
    assert rows_of(parts) == rows_of(whole)


def test_every_text_is_reported_once_and_in_order(word_tokenizer, monkeypatch):
    monkeypatch.setattr("launcher.data.encode._TEXTS_PER_BATCH", 5)
    heard = list[int]()
    with reporting_to(heard.append):
        encode(TEXTS, word_tokenizer, special_tokens=True)
    assert heard == [5, 5, 2]


@pytest.mark.parametrize("place", [0, 6, 11])
def test_what_no_tokenizer_takes_is_raised_from_any_batch(word_tokenizer, monkeypatch, place):
    monkeypatch.setattr("launcher.data.encode._TEXTS_PER_BATCH", 5)
    texts: list[Any] = [*TEXTS]
    texts[place] = b"the cat"
    with pytest.raises(TypeError):
        encode(texts, word_tokenizer, special_tokens=True)
    assert encode(TEXTS, word_tokenizer, special_tokens=True).lengths[0] == 9


def test_no_texts_give_no_rows(word_tokenizer):
    assert rows_of(encode([], word_tokenizer, special_tokens=True)) == []


def test_state_left_by_an_earlier_call_neither_cuts_nor_is_lost(word_tokenizer):
    backend = word_tokenizer.backend_tokenizer
    word_tokenizer(["the cat sat"], truncation=True, max_length=3, padding="max_length")
    cutting, padding = backend.truncation, backend.padding
    assert cutting is not None and padding is not None
    assert encode(["the cat sat on the mat"], word_tokenizer, special_tokens=True).lengths.tolist() == [8]
    assert (backend.truncation, backend.padding) == (cutting, padding)
    backend.no_truncation()
    backend.no_padding()


class PythonTokenizer:
    """A tokenizer without a Rust part: only the call is there."""

    def __init__(self, fast: Any) -> None:
        self.fast = fast

    def __call__(self, texts: list[str], **settings: Any) -> Any:
        return self.fast(texts, **settings)


def test_tokenizer_written_in_python_gives_the_same_rows(word_tokenizer):
    slow = encode(TEXTS, PythonTokenizer(word_tokenizer), special_tokens=True)
    assert rows_of(slow) == rows_of(encode(TEXTS, word_tokenizer, special_tokens=True))


def test_special_ids_around_a_text_are_found(word_tokenizer, begin_tokenizer, plain_tokenizer):
    assert (opening(word_tokenizer), closing(word_tokenizer)) == ([2], [3])
    assert (opening(begin_tokenizer), closing(begin_tokenizer)) == ([begin_tokenizer.bos_token_id], [])
    assert (opening(plain_tokenizer), closing(plain_tokenizer)) == ([], [])

"""Rows as token ids: what is cut, what is kept, what is trained."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.ragged import offsets_of
from launcher.data.templates import prompt_ids
from launcher.data.tokens import TokenStore, shifted_targets, tokenise
from launcher.errors import DataError


def classified(texts: list[str], labels: list[int] | None = None) -> Examples:
    ids = None if labels is None else np.array(labels, dtype=np.int64)
    lines = list(range(2, len(texts) + 2))
    return Examples(layout="text_label", texts={"text": texts}, labels=ids, lines=lines, path=Path("a.csv"))


def instructed(rows: list[tuple[str, str, str]]) -> Examples:
    texts = {
        role: [row[place] for row in rows] for place, role in enumerate(["instruction", "input", "output"])
    }
    lines = list(range(1, len(rows) + 1))
    return Examples(layout="instruction", texts=texts, labels=None, lines=lines, path=Path("a.json"))


def written(texts: list[str]) -> Examples:
    lines = list(range(1, len(texts) + 1))
    return Examples(layout="plain_text", texts={"text": texts}, labels=None, lines=lines, path=Path("a.txt"))


def store_of(examples, tokenizer, max_length=512, template="auto", limit=None) -> TokenStore:
    task = "classification" if examples.layout == "text_label" else "causal_lm"
    options = DataOptions(train_file="x", max_length=max_length)
    return tokenise(examples, tokenizer, options=options, task=task, template=template, limit=limit)


def row(store: TokenStore, number: int) -> list[int]:
    return store.input_ids[store.offsets[number] : store.offsets[number + 1]].tolist()


def trained(store: TokenStore, number: int) -> list[int]:
    part = slice(store.offsets[number], store.offsets[number + 1])
    return store.input_ids[part][store.trained[part]].tolist()


def test_classified_rows_are_the_tokenizers_own(word_tokenizer):
    texts = ["the cat sat on the mat", "good"]
    store = store_of(classified(texts, [1, 0]), word_tokenizer)
    assert [row(store, number) for number in range(2)] == word_tokenizer(texts)["input_ids"]
    assert store.labels.tolist() == [1, 0]
    assert store.num_targets.tolist() == [1, 1]
    assert (store.input_ids.dtype, store.offsets.dtype) == (np.int32, np.int64)


def test_cut_rows_are_counted_and_said(word_tokenizer):
    store = store_of(classified(["the cat sat on the mat", "good"], [1, 0]), word_tokenizer, max_length=5)
    assert store.num_truncated == 1
    assert "1 of 2 rows (50.0%)" in store.notices[0]
    assert row(store, 0)[-1] == word_tokenizer.sep_token_id


def test_nothing_cut_nothing_said(word_tokenizer):
    assert store_of(classified(["good"], [0]), word_tokenizer).notices == ()


def test_the_models_limit_holds_where_it_is_less(word_tokenizer):
    store = store_of(classified(["the cat sat on the mat"], [0]), word_tokenizer, max_length=100, limit=4)
    assert store.lengths.tolist() == [4]
    assert store.max_length == 4


@pytest.mark.parametrize("name", ["plain_tokenizer", "begin_tokenizer", "chat_tokenizer"])
@pytest.mark.parametrize("template", ["auto", "alpaca", "plain"])
def test_b038_only_the_answer_and_its_end_token_are_trained_also_where_pad_is_the_end(
    name, template, request
):
    tokenizer = request.getfixturevalue(name)
    assert tokenizer.pad_token_id == tokenizer.eos_token_id
    store = store_of(instructed([("what is your name", "", "i am the cat")]), tokenizer, template=template)
    answer = tokenizer("i am the cat", add_special_tokens=False)["input_ids"]
    assert trained(store, 0) == [*answer, tokenizer.eos_token_id]
    assert store.num_targets.tolist() == [len(answer) + 1]


@pytest.mark.parametrize("name", ["plain_tokenizer", "begin_tokenizer", "chat_tokenizer"])
def test_what_stands_in_front_of_the_answer_is_what_prediction_continues(name, request):
    tokenizer = request.getfixturevalue(name)
    store = store_of(instructed([("what is", "the cat", "good")]), tokenizer)
    before = len(row(store, 0)) - len(trained(store, 0))
    assert row(store, 0)[:before] == prompt_ids("what is", "the cat", tokenizer, "auto")


def test_chat_rows_are_the_template_of_the_whole_talk_up_to_the_end_of_the_answer(chat_tokenizer):
    store = store_of(instructed([("what is", "", "good")]), chat_tokenizer)
    talk = [{"role": "user", "content": "what is"}, {"role": "assistant", "content": "good"}]
    whole = chat_tokenizer.apply_chat_template(talk, tokenize=False).rstrip("\n")
    assert row(store, 0) == chat_tokenizer(whole, add_special_tokens=False)["input_ids"]


def around_the_limit(num_short: int, answer: str, prompt: str) -> Examples:
    return instructed([("the", "", "a cat")] * num_short + [(prompt, "", answer)])


def test_b039_prompt_is_cut_from_the_left_and_the_answer_kept(begin_tokenizer):
    examples = around_the_limit(3, "the dog sat", "not " * 200 + "very good")
    store = store_of(examples, begin_tokenizer, max_length=24, template="plain")
    whole = store_of(examples, begin_tokenizer, max_length=5000, template="plain")
    assert len(row(store, 3)) == 24
    assert trained(store, 3) == trained(whole, 3)
    assert row(store, 3)[0] == begin_tokenizer.bos_token_id
    assert row(store, 3)[1:] == row(whole, 3)[-23:]
    assert store.num_truncated == 1
    assert "the beginning of the prompt" in store.notices[-1]
    assert (store.num_targets > 0).all()


@pytest.mark.parametrize("name", ["plain_tokenizer", "begin_tokenizer"])
@given(spare=st.integers(-3, 6))
def test_b039_every_kept_row_trains_its_whole_answer_at_any_limit(name, spare, request):
    """Around the limit: kept with its whole answer, or refused with a way out that works, and just works."""
    tokenizer = request.getfixturevalue(name)
    answer = tokenizer("the dog sat", add_special_tokens=False)["input_ids"]
    examples = around_the_limit(0, "the dog sat", "very good film")
    try:
        store = store_of(examples, tokenizer, max_length=len(answer) + 2 + spare, template="plain")
    except DataError as error:
        assert spare < 0
        typed = error.problems[0].type
        enough = int(typed.partition("=")[2].split()[0])
        store = store_of(examples, tokenizer, max_length=enough, template="plain")
        with pytest.raises(DataError):
            store_of(examples, tokenizer, max_length=enough - 1, template="plain")
    assert trained(store, 0) == [*answer, tokenizer.eos_token_id]
    assert store.num_targets.tolist() == [len(answer) + 1]


def test_b039_more_than_one_row_in_a_hundred_without_its_answer_is_refused(plain_tokenizer):
    examples = around_the_limit(98, "the dog sat on the mat " * 10, "what is")
    with pytest.raises(DataError, match=r"a.json:99  1 of 99 rows have an answer that does not fit") as error:
        store_of(examples, plain_tokenizer, max_length=20, template="plain")
    assert error.value.problems[0].type.startswith("data.max_length=")


def test_b039_one_row_in_a_hundred_is_left_out_and_said(plain_tokenizer):
    examples = around_the_limit(99, "the dog sat on the mat " * 10, "what is")
    store = store_of(examples, plain_tokenizer, max_length=20, template="plain")
    assert len(store) == 99
    assert "1 of 100 rows" in store.notices[0] and "line 100" in store.notices[0]
    assert (store.num_targets > 0).all()


def test_plain_text_is_joined_by_the_end_token_and_cut_into_blocks(plain_tokenizer):
    texts = ["the cat sat on the mat .", "good film !", "a dog was not very funny"]
    store = store_of(written(texts), plain_tokenizer, max_length=4)
    ids = plain_tokenizer(texts)["input_ids"]
    stream = [token for document in ids for token in [*document, plain_tokenizer.eos_token_id]]
    assert store.input_ids.tolist() == stream[: len(store.input_ids)]
    assert len(stream) - len(store.input_ids) == (1 if len(stream) % 4 == 1 else 0)
    assert set(store.lengths[:-1].tolist()) == {4}
    assert store.trained is None
    assert store.num_targets.tolist() == (store.lengths - 1).tolist()
    assert "3 documents" in store.notices[0]


@pytest.mark.parametrize("length", range(1, 10))
def test_last_block_has_a_target_or_is_left_out(plain_tokenizer, length):
    store = store_of(written(["!" * (length + 4)]), plain_tokenizer, max_length=4)
    assert (store.num_targets > 0).all()


def test_documents_begin_as_the_tokenizer_begins_a_text(begin_tokenizer):
    store = store_of(written(["the cat", "a dog"]), begin_tokenizer, max_length=100)
    ids = begin_tokenizer(["the cat", "a dog"])["input_ids"]
    end = begin_tokenizer.eos_token_id
    assert store.input_ids.tolist() == [*ids[0], end, *ids[1], end]


def test_tokenizer_without_an_end_token_is_refused(word_tokenizer):
    with pytest.raises(DataError, match="no end token"):
        store_of(written(["the cat"]), word_tokenizer)


@given(
    st.lists(st.lists(st.booleans(), max_size=6), min_size=1, max_size=8),
)
def test_b070_shifted_targets_are_those_that_a_shifted_loss_sums(rows):
    offsets = offsets_of(np.array([len(row) for row in rows], dtype=np.int64))
    flat = np.array([value for row in rows for value in row], dtype=bool)
    assert shifted_targets(offsets, flat).tolist() == [sum(row[1:]) for row in rows]


def test_minilm_rows_are_its_tokenizers_own(minilm_tokenizer):
    texts = ["It’s a charming and often affecting journey.", "", "Déjà vu, 東京! " * 30]
    store = store_of(classified(texts, [0, 1, 0]), minilm_tokenizer, max_length=64)
    expected = minilm_tokenizer(texts, truncation=True, max_length=64)["input_ids"]
    minilm_tokenizer.backend_tokenizer.no_truncation()
    assert [row(store, number) for number in range(3)] == expected

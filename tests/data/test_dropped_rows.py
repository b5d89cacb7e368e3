"""Rows that are left out of training because they are too long, and what evaluation makes of such rows."""

from pathlib import Path

import pytest

from launcher.data.examples import Examples, Turn
from launcher.data.lengths import Length
from launcher.data.options import DataOptions
from launcher.data.tokens import TokenStore, tokenise
from launcher.errors import BadValue, DataError

LONG = "the dog sat on the mat " * 20


def instructed(answers: list[str], prompt: str = "what is") -> Examples:
    texts = {
        "instruction": [prompt] * len(answers),
        "input": [""] * len(answers),
        "output": answers,
    }
    lines = list(range(1, len(answers) + 1))
    return Examples(layout="instruction", texts=texts, labels=None, lines=lines, path=Path("a.json"))


def talked(answers: list[str | None]) -> Examples:
    question = Turn(role="user", text="what is")
    turns = [
        (question,) if answer is None else (question, Turn(role="assistant", text=answer))
        for answer in answers
    ]
    lines = list(range(1, len(answers) + 1))
    return Examples(layout="messages", texts={}, labels=None, lines=lines, path=Path("a.json"), turns=turns)


def dropped(examples: Examples, tokenizer, length: Length | None = None, most: int = 40) -> TokenStore:
    options = DataOptions(train_file="x", max_length=most, overflow="drop", template="chatml")
    return tokenise(examples, tokenizer, options=options, task="causal_lm", template="chatml", length=length)


def text_of(store: TokenStore, number: int, tokenizer, *, trained: bool) -> str:
    part = slice(store.offsets[number], store.offsets[number + 1])
    ids = store.input_ids[part]
    return tokenizer.decode(ids[store.trained[part]] if trained else ids)


@pytest.mark.parametrize("rows", [instructed, talked])
def test_training_leaves_out_any_number_of_long_rows_and_counts_them(rows, chat_tokenizer):
    store = dropped(rows(["good", LONG, "bad", LONG]), chat_tokenizer)
    assert len(store) == 2
    assert "2 of 4 rows (50.0%) are longer than max_length 40 and are left out" in store.notices[-1]


@pytest.mark.parametrize("rows", [instructed, talked])
def test_evaluation_keeps_every_row_and_the_beginning_of_an_answer_that_does_not_fit(rows, chat_tokenizer):
    held_out = rows(["good", LONG, "bad", LONG])
    train = dropped(rows(["good"] * 3), chat_tokenizer)
    store = dropped(held_out, chat_tokenizer, train.length)
    assert len(store) == 4 and int(store.lengths.max()) == 40
    assert store.sources is None and (store.num_targets > 0).all()
    whole = text_of(store, 1, chat_tokenizer, trained=False)
    answer = text_of(store, 1, chat_tokenizer, trained=True)
    assert LONG.startswith(answer.strip()) and whole.endswith(answer) and len(answer) > 10
    assert "what is" in whole
    assert any("2 of 4 rows are evaluated on the beginning of their answer" in said for said in store.notices)
    assert text_of(store, 0, chat_tokenizer, trained=True).startswith("good<|im_end|>")


def test_an_answer_and_a_prompt_that_are_too_long_share_the_row(chat_tokenizer):
    store = dropped(instructed([LONG], prompt="a cat " * 50), chat_tokenizer, Length(value=40, reason=""))
    assert store.lengths.tolist() == [40]
    assert 18 <= int(store.trained.sum()) <= 22


def test_without_dropping_evaluation_still_refuses_answers_that_do_not_fit(chat_tokenizer):
    options = DataOptions(train_file="x", max_length=40, template="chatml")
    with pytest.raises(DataError, match="2 of 4 rows have an answer that does not fit"):
        tokenise(
            instructed(["good", LONG, "bad", LONG]),
            chat_tokenizer,
            options=options,
            task="causal_lm",
            template="chatml",
            length=Length(value=40, reason=""),
        )


def test_evaluation_rows_that_have_no_answer_at_all_are_refused_above_the_threshold(chat_tokenizer):
    with pytest.raises(DataError, match="1 of 3 rows have no answer"):
        dropped(talked(["good", None, "bad"]), chat_tokenizer, Length(value=40, reason=""))
    store = dropped(talked(["good"] * 199 + [None]), chat_tokenizer, Length(value=40, reason=""))
    assert len(store) == 199


@pytest.mark.parametrize("task", ["classification", "causal_lm"])
def test_a_length_that_leaves_no_row_is_refused_with_the_length_to_type(task, word_tokenizer, chat_tokenizer):
    options = DataOptions(train_file="x", max_length=3, overflow="drop", template="chatml")
    rows = instructed(["good"] * 3)
    if task == "classification":
        texts = {"text": ["the cat sat on the mat"] * 3}
        rows = Examples(layout="text_label", texts=texts, labels=None, lines=[1, 2, 3], path=Path("a.csv"))
    tokenizer = word_tokenizer if task == "classification" else chat_tokenizer
    with pytest.raises(BadValue, match="drop leaves no row: each of the 3") as error:
        tokenise(rows, tokenizer, options=options, task=task, template="chatml")
    enough = int(error.value.problems[0].type.partition("=")[2].split()[0])
    wider = options.model_copy(update={"max_length": enough})
    assert len(tokenise(rows, tokenizer, options=wider, task=task, template="chatml")) == 3

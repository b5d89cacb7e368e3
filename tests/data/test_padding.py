"""How much of what is computed is padding, on real data."""

from pathlib import Path
from typing import Any

import pytest

from launcher.data.options import DataOptions
from launcher.data.order import RowOrder
from launcher.data.split import read_splits
from launcher.data.tokens import TokenStore, tokenise

BATCH = 32


def store_of(file: Path, tokenizer: Any, task: str, **options: Any) -> TokenStore:
    settings = DataOptions(train_file=str(file), max_lost_fraction=0.5, **options)
    rows = read_splits(settings, file, None, task, 1).train
    return tokenise(rows, tokenizer, options=settings, task=task)


def waste(store: TokenStore, batch: int, *, grouped: bool) -> float:
    """1 - real tokens / tokens computed, over one epoch."""
    order, lengths = RowOrder(store.lengths, batch, 1, grouped), store.lengths
    windows = [order.window(step) for step in range(order.steps_per_epoch)]
    computed = sum(int(lengths[rows].max()) * len(rows) for rows in windows)
    return 1 - int(lengths.sum()) / computed


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("meld/train_sent_emo.csv", {"max_length": 128}),
        ("meld/train_sent_emo.csv", {"max_length": 128, "context": {"turns": 8}}),
        ("imdb/train.csv", {"max_length": 512}),
    ],
    ids=["meld", "meld with context", "imdb"],
)
def test_grouped_batches_of_32_are_padding_to_at_most_three_percent(
    file: str, options: dict[str, Any], shared_data: Path, minilm_tokenizer: Any
) -> None:
    store = store_of(shared_data / file, minilm_tokenizer, "classification", **options)
    assert waste(store, BATCH, grouped=True) <= 0.03
    assert waste(store, BATCH, grouped=False) > 0.2  # the control: without grouping much is


@pytest.mark.parametrize(
    ("file", "layout"),
    [("llamafactory/alpaca_en_demo.json", "auto"), ("llamafactory/c4_demo.jsonl", "plain_text")],
    ids=["alpaca", "c4"],
)
def test_packed_rows_are_padding_to_at_most_two_percent(
    file: str, layout: str, shared_data: Path, plain_tokenizer: Any
) -> None:
    options = {"max_length": 4096, "layout": layout, "packing": True}
    store = store_of(shared_data / file, plain_tokenizer, "causal_lm", **options)
    assert waste(store, 8, grouped=True) <= 0.02

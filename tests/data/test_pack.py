"""Which samples share a row: nothing lost, nothing too long, little room left over."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.batches_torch import collate
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.pack import best_fit_decreasing
from launcher.data.tokens import TokenStore, tokenise


def brute(lengths: list[int], capacity: int) -> list[list[int]]:
    """Best-fit decreasing as the textbook has it."""
    bins: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        fitting = [each for each in bins if sum(each) + length <= capacity]
        if fitting:
            min(fitting, key=lambda each: capacity - sum(each)).append(length)
        else:
            bins.append([length])
    return bins


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=60), spare=st.integers(0, 15))
def test_bins_are_those_of_the_textbook(lengths: list[int], spare: int) -> None:
    capacity = max(lengths) + spare
    order, counts = best_fit_decreasing(np.array(lengths, dtype=np.int64), capacity)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    bins = np.split(np.array(lengths)[order], np.cumsum(counts)[:-1])
    assert max(int(each.sum()) for each in bins) <= capacity
    assert sorted(int(each.sum()) for each in bins) == sorted(map(sum, brute(lengths, capacity)))
    assert len(bins) <= math.floor(11 / 9 * math.ceil(sum(lengths) / capacity) + 1) or len(bins) <= len(
        lengths
    )


def store_of(tokenizer, *, packing: bool, max_length: int = 32) -> TokenStore:
    draw = np.random.default_rng(1)
    rows = [("the cat " * int(draw.integers(1, 4)), "good " * int(draw.integers(1, 5))) for _ in range(40)]
    texts = {
        "instruction": [row[0] for row in rows],
        "input": [""] * len(rows),
        "output": [row[1] for row in rows],
    }
    lines = list(range(len(rows)))
    examples = Examples(layout="instruction", texts=texts, labels=None, lines=lines, path=Path("a.json"))
    options = DataOptions(train_file="x", max_length=max_length, packing=packing)
    return tokenise(examples, tokenizer, options=options, task="causal_lm", template="plain")


def samples(store: TokenStore) -> list[tuple[tuple[int, ...], tuple[bool, ...]]]:
    borders = store.offsets if store.segments is None else store.segments
    pairs = zip(borders[:-1], borders[1:], strict=True)
    return sorted(
        (tuple(store.input_ids[a:b].tolist()), tuple(store.trained[a:b].tolist())) for a, b in pairs
    )


def test_packed_rows_hold_the_same_samples_and_targets(plain_tokenizer):
    alone, together = (store_of(plain_tokenizer, packing=packing) for packing in (False, True))
    assert samples(alone) == samples(together)
    assert int(alone.num_targets.sum()) == int(together.num_targets.sum())
    assert set(together.offsets.tolist()) <= set(together.segments.tolist())
    assert "40 samples in" in together.notices[-1] and "% full" in together.notices[-1]


def test_a_batch_of_packed_rows_counts_positions_and_targets_by_sample(plain_tokenizer):
    store = store_of(plain_tokenizer, packing=True)
    batch = collate(store, np.arange(len(store)), pad_token_id=0)
    places, mask = batch["position_ids"], batch["attention_mask"]
    assert int((places[mask == 1] == 0).sum()) == len(store.segments) - 1
    assert (batch["labels"][(mask == 1) & (places == 0)] == -100).all()
    assert (batch["labels"][mask == 0] == -100).all()
    assert int((batch["labels"] != -100).sum()) == int(store.num_targets.sum())
    ends = mask.sum(1)
    for row, end in enumerate(ends.tolist()):  # padding is a sample of its own, never a continuation
        assert end == places.shape[1] or int(places[row, end]) == 0


def test_documents_are_cut_to_rows_and_packed(plain_tokenizer):
    texts = ["the cat sat on the mat " * count for count in (1, 9, 2, 30)]
    lines = list(range(len(texts)))
    examples = Examples(
        layout="plain_text", texts={"text": texts}, labels=None, lines=lines, path=Path("a.txt")
    )
    options = DataOptions(train_file="x", max_length=32, packing=True)
    store = tokenise(examples, plain_tokenizer, options=options, task="causal_lm")
    ids = [
        *(
            one
            for text in texts
            for one in [*plain_tokenizer(text)["input_ids"], plain_tokenizer.eos_token_id]
        )
    ]
    assert len(ids) - len(store.input_ids) <= len(texts)  # a last piece of one id may go
    assert int(store.lengths.max()) <= 32


@pytest.mark.parametrize("length", [0, 1])
def test_rows_that_are_full_take_nothing_more(length: int) -> None:
    order, counts = best_fit_decreasing(np.array([5, 5, length + 1], dtype=np.int64), 5)
    assert counts.tolist() == [1, 1, 1] and order.tolist() == [0, 1, 2]

"""Padded micro batches of global steps, and the batches of an evaluation."""

import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.batches_torch import IGNORED, collate, eval_batches, windows
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.order import RowOrder
from launcher.data.ragged import offsets_of
from launcher.data.tokens import TokenStore, shifted_targets, tokenise
from launcher.facts import StepSettings

PAD = 99


def store_of(lengths: list[int], task: str = "causal_lm", trained_from: int = 0) -> TokenStore:
    """Row i holds ids 100 * i + place; a language model trains the ids from `trained_from` on."""
    offsets = offsets_of(np.array(lengths, dtype=np.int64))
    ids = [100 * row + place for row, length in enumerate(lengths) for place in range(length)]
    trained = np.array([place >= trained_from for length in lengths for place in range(length)], dtype=bool)
    classes = task == "classification"
    rows = len(lengths)
    return TokenStore(
        task=task,
        input_ids=np.array(ids, dtype=np.int32),
        offsets=offsets,
        labels=np.arange(rows, dtype=np.int64) % 3 if classes else None,
        trained=None if classes else trained,
        num_targets=np.ones(rows, dtype=np.int64) if classes else shifted_targets(offsets, trained),
        max_length=64,
    )


def settings_of(micro: int, accumulation: int, num_ranks: int) -> StepSettings:
    return StepSettings(
        global_batch_size=micro * accumulation * num_ranks,
        micro_batch_size=micro,
        accumulation_steps=accumulation,
        num_ranks=num_ranks,
    )


def run(
    store: TokenStore, settings: StepSettings, rank: int = 0, start: int = 0, steps: int = 6, **more: Any
):
    order = RowOrder(store.lengths, settings.global_batch_size, 3, True)
    return list(windows(store, order, settings, rank, start, steps, PAD, **more))


def same(left, right) -> bool:
    return [(w.step, w.epoch, w.num_targets, w.num_rows, w.num_tokens) for w in left] == [
        (w.step, w.epoch, w.num_targets, w.num_rows, w.num_tokens) for w in right
    ] and all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
        for one, two in zip(left, right, strict=True)
        for a, b in zip(one.micro_batches, two.micro_batches, strict=True)
    )


def test_language_batch_pads_on_the_right_and_ignores_what_is_not_trained():
    batch = collate(store_of([3, 2], trained_from=1), np.array([0, 1]), PAD)
    assert batch["input_ids"].tolist() == [[0, 1, 2], [100, 101, PAD]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch["labels"].tolist() == [[IGNORED, 1, 2], [IGNORED, 101, IGNORED]]
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}


def test_classification_batch_has_one_label_a_row():
    batch = collate(store_of([3, 2, 4], "classification"), np.array([2, 1]), PAD)
    assert batch["labels"].tolist() == [2, 1]
    assert batch["input_ids"].tolist() == [[200, 201, 202, 203], [100, 101, PAD, PAD]]


def test_b038_end_token_stays_a_target_where_it_is_also_the_pad():
    store = store_of([3, 2])
    store.input_ids[[2, 4]] = PAD  # the last id of each row is the end token
    batch = collate(store, np.array([0, 1]), PAD)
    assert batch["labels"].tolist() == [[0, 1, PAD], [100, PAD, IGNORED]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize(("longest", "width"), [(5, 8), (8, 8), (62, 64), (64, 64)])
def test_width_is_rounded_up_to_the_multiple(longest, width):
    assert collate(store_of([longest, 2]), np.array([0, 1]), PAD, 8)["input_ids"].shape == (2, width)


def test_rounding_up_stops_at_the_models_limit():
    assert collate(store_of([60, 2]), np.array([0]), PAD, 48)["input_ids"].shape == (1, 64)


@pytest.mark.parametrize(("task", "shape"), [("classification", (1,)), ("causal_lm", (1, 2))])
def test_batch_without_rows_is_one_row_that_no_loss_counts(task, shape):
    batch = collate(store_of([3, 2], task), np.array([], dtype=np.int64), PAD)
    assert batch["labels"].shape == shape
    assert (batch["labels"] == IGNORED).all()
    assert batch["attention_mask"].tolist() == [[1, 1]]
    assert batch["input_ids"].tolist() == [[PAD, PAD]]


def test_batch_without_rows_has_the_keys_and_dtypes_of_a_full_one():
    store = store_of([3, 2])
    full, none = (collate(store, np.array(rows, dtype=np.int64), PAD) for rows in ([0], []))
    assert {name: tensor.dtype for name, tensor in full.items()} == {
        name: tensor.dtype for name, tensor in none.items()
    }


LENGTHS = np.random.default_rng(1).integers(2, 30, 45).tolist()


@pytest.mark.parametrize(
    ("micro", "accumulation", "num_ranks"), [(8, 1, 1), (1, 8, 1), (2, 2, 2), (4, 1, 2), (1, 1, 8)]
)
def test_b070_targets_are_counted_over_the_global_batch_however_it_is_cut(micro, accumulation, num_ranks):
    """Every cut of 8 rows gives the same count, and the count is what the ranks' labels hold together."""
    store = store_of(LENGTHS, trained_from=2)
    ranks = [run(store, settings_of(micro, accumulation, num_ranks), rank) for rank in range(num_ranks)]
    for parts in zip(*ranks, strict=True):
        held = sum(int((b["labels"][:, 1:] != IGNORED).sum()) for part in parts for b in part.micro_batches)
        assert {part.num_targets for part in parts} == {held}
        assert len({len(part.micro_batches) for part in parts}) == 1
    whole = [window.num_targets for window in run(store, settings_of(8, 1, 1))]
    assert [window.num_targets for window in ranks[0]] == whole
    assert len(set(whole)) > 1, "windows of one count would prove nothing"


def test_b070_short_last_window_counts_its_own_rows():
    store = store_of(LENGTHS, "classification")
    last = run(store, settings_of(4, 2, 2), steps=3)[-1]
    assert (last.num_rows, last.num_targets, last.epoch) == (13, 13, 1.0)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_later_start_continues_exactly(num_workers):
    store, settings = store_of(LENGTHS), settings_of(2, 2, 2)
    whole = run(store, settings, 1, 0, 12)
    assert same(whole[5:], run(store, settings, 1, 5, 7, num_workers=num_workers))


def test_workers_give_the_same_windows_in_the_same_order():
    store, settings = store_of(LENGTHS), settings_of(2, 3, 1)
    assert same(run(store, settings, steps=20), run(store, settings, steps=20, num_workers=2))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_the_global_generators_are_never_drawn_from(num_workers):
    store, settings = store_of(LENGTHS), settings_of(2, 2, 1)
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    run(store, settings, num_workers=num_workers)
    list(eval_batches(store, 4, 0, 1, PAD))
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert (np.random.get_state()[1] == numpy_before).all()


def test_closing_early_leaves_no_process_and_no_thread():
    store, settings = store_of(LENGTHS), settings_of(2, 2, 1)
    order = RowOrder(store.lengths, 4, 0, True)
    iterator = windows(store, order, settings, 0, 0, 1000, PAD, num_workers=2)
    next(iterator)
    workers = multiprocessing.active_children()
    assert len(workers) == 2
    iterator.close()
    assert not multiprocessing.active_children()
    assert not any(worker.is_alive() for worker in workers)
    assert [thread for thread in threading.enumerate() if not thread.daemon] == [threading.main_thread()]


@given(
    num_rows=st.integers(1, 40),
    batch_size=st.integers(1, 9),
    num_ranks=st.integers(1, 5),
)
def test_b072_evaluation_sees_each_row_exactly_once_on_any_number_of_ranks(num_rows, batch_size, num_ranks):
    store = store_of([2 + row % 7 for row in range(num_rows)], "classification")
    ranks = [list(eval_batches(store, batch_size, rank, num_ranks, PAD)) for rank in range(num_ranks)]
    rows = np.concatenate([ids for batches in ranks for ids, _ in batches])
    assert sorted(rows.tolist()) == list(range(num_rows))
    assert len({len(batches) for batches in ranks}) == 1
    for ids, batch in (pair for batches in ranks for pair in batches):
        expected = (ids % 3).tolist() if len(ids) else [IGNORED]
        assert batch["labels"].tolist() == expected
        assert len(ids) <= batch_size


def test_b072_twenty_two_rows_on_three_ranks_include_batches_without_a_duplicate():
    store = store_of([4] * 22, "classification")
    sizes = [[len(ids) for ids, _ in eval_batches(store, 4, rank, 3, PAD)] for rank in range(3)]
    assert sum(map(sum, sizes)) == 22
    assert {len(rank) for rank in sizes} == {2}


def test_evaluation_goes_from_long_to_short():
    store = store_of(LENGTHS)
    widths = [batch["input_ids"].shape[1] for _, batch in eval_batches(store, 8, 0, 1, PAD)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == max(LENGTHS)


def test_rows_without_labels_give_batches_without_labels(word_tokenizer):
    examples = Examples(
        layout="text_label", texts={"text": ["the cat"]}, labels=None, lines=[1], path=Path("typed")
    )
    options = DataOptions(train_file="x.csv")
    store = tokenise(examples, word_tokenizer, options=options, task="classification")
    (rows, batch), *none = eval_batches(store, 4, 0, 1, 0)
    assert rows.tolist() == [0] and not none
    assert batch.keys() == {"input_ids", "attention_mask"}

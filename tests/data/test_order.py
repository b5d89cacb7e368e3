"""The order of rows, and how a step is cut over ranks and micro batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.order import RowOrder, cut
from launcher.facts import StepSettings


def lengths_of(num_rows: int, seed: int = 0) -> np.ndarray:
    """Mostly short, a few long, as utterances are."""
    return np.random.default_rng(seed).geometric(0.08, num_rows).astype(np.int64) + 2


def epoch_rows(order: RowOrder, epoch: int) -> list[int]:
    steps = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
    return np.concatenate([order.window(step) for step in steps]).tolist()


@given(
    num_rows=st.integers(1, 300),
    batch=st.integers(1, 50),
    seed=st.integers(0, 5),
    grouped=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_every_row_comes_once_an_epoch(num_rows, batch, seed, grouped, epoch):
    order = RowOrder(lengths_of(num_rows), batch, seed, grouped)
    assert sorted(epoch_rows(order, epoch)) == list(range(num_rows))


@given(num_rows=st.integers(1, 300), batch=st.integers(1, 50), grouped=st.booleans())
def test_only_the_last_window_of_an_epoch_is_short(num_rows, batch, grouped):
    order = RowOrder(lengths_of(num_rows), batch, 0, grouped)
    sizes = [len(order.window(step)) for step in range(order.steps_per_epoch)]
    assert sizes[:-1] == [batch] * (len(sizes) - 1)
    assert sizes[-1] == num_rows - batch * (len(sizes) - 1)


@pytest.mark.parametrize("grouped", [True, False])
def test_order_depends_on_seed_and_epoch_and_on_nothing_else(grouped):
    lengths = lengths_of(1000)
    order = RowOrder(lengths, 32, 7, grouped)
    forward = [order.window(step).tolist() for step in range(70)]
    np.random.default_rng(0).random(5)
    again = RowOrder(lengths, 32, 7, grouped)
    assert [again.window(step).tolist() for step in reversed(range(70))] == forward[::-1]
    assert epoch_rows(order, 0) != epoch_rows(order, 1)
    assert epoch_rows(order, 0) != epoch_rows(RowOrder(lengths, 32, 8, grouped), 0)


def test_order_is_the_same_on_every_machine():
    """Frozen: a checkpoint's position has to mean the same rows in a later version."""
    assert RowOrder(np.ones(8, dtype=np.int64), 4, 42, False).window(0).tolist() == [3, 4, 2, 7]


def plainly(lengths: np.ndarray, batch: int, seed: int, epoch: int) -> list[int]:
    """The grouped order as it is described, every step a new array: permute, sort blocks, shuffle windows."""
    random = np.random.default_rng([seed, epoch])
    rows = random.permutation(len(lengths))
    num_windows = len(rows) // batch
    whole, rest = rows[: num_windows * batch], rows[num_windows * batch :]
    blocks = []
    for block in np.array_split(whole.reshape(num_windows, batch), -(-num_windows // 256)):
        mixed = block.reshape(-1)
        blurred = lengths[mixed] * random.uniform(0.985, 1.015, len(mixed))
        blocks.append(mixed[np.argsort(blurred, kind="stable")])
    shuffled = random.permutation(np.concatenate(blocks).reshape(num_windows, batch))
    return [*shuffled.reshape(-1).tolist(), *rest.tolist()]


@pytest.mark.parametrize(("num_rows", "batch"), [(10_000, 32), (9_999, 7), (50, 50)])
def test_grouped_order_in_place_is_the_one_described(num_rows, batch):
    lengths = lengths_of(num_rows)
    order = RowOrder(lengths, batch, 5)
    for epoch in (0, 2):
        assert epoch_rows(order, epoch) == plainly(lengths, batch, 5, epoch)


def test_an_order_takes_eight_bytes_a_row():
    order = RowOrder(lengths_of(1000), 32, 0)
    held = [value.nbytes for value in (order.lengths, order._order(0))]
    assert sum(held) == 8 * 1000


def waste(order: RowOrder) -> float:
    windows = [order.lengths[order.window(step)] for step in range(order.steps_per_epoch)]
    return 1 - sum(int(w.sum()) for w in windows) / sum(int(w.max()) * len(w) for w in windows)


def test_grouping_wastes_at_most_three_percent_and_a_plain_order_much_more():
    lengths = lengths_of(10_000)
    assert waste(RowOrder(lengths, 32, 0, True)) <= 0.03
    assert waste(RowOrder(lengths, 32, 0, False)) > 0.3


def test_grouping_shuffles_windows_and_their_members():
    order = RowOrder(lengths_of(10_000), 32, 0, True)
    means = np.array([order.lengths[order.window(step)].mean() for step in range(312)])
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.2, "neighbouring windows are alike in length"
    mates = [{frozenset(order.window(step).tolist()) for step in range(s, s + 312)} for s in (0, 313)]
    assert len(mates[0] & mates[1]) <= 3, "the same rows meet again in the next epoch"


def test_short_last_window_is_not_always_the_longest_rows():
    order = RowOrder(np.arange(1, 101, dtype=np.int64), 32, 0, True)
    lasts = np.concatenate([order.window(4 * epoch + 3) for epoch in range(30)])
    assert 35 < lasts.mean() < 65


def test_grouped_order_still_visits_short_and_long_rows_throughout_an_epoch():
    order = RowOrder(lengths_of(10_000), 32, 0, True)
    quarters = np.array_split(np.array(epoch_rows(order, 0)), 4)
    means = [order.lengths[quarter].mean() for quarter in quarters]
    assert max(means) / min(means) < 1.5


@given(
    num_rows=st.integers(1, 200),
    micro=st.integers(1, 16),
    accumulation=st.integers(1, 5),
    num_ranks=st.integers(1, 7),
)
def test_cut_covers_the_window_exactly_on_any_number_of_ranks(num_rows, micro, accumulation, num_ranks):
    settings = StepSettings(
        global_batch_size=micro * accumulation * num_ranks,
        micro_batch_size=micro,
        accumulation_steps=accumulation,
        num_ranks=num_ranks,
    )
    lengths = lengths_of(1000)
    window = np.random.default_rng(num_rows).permutation(1000)[: min(num_rows, settings.global_batch_size)]
    parts = [cut(window, lengths, settings, rank) for rank in range(num_ranks)]
    assert sorted(np.concatenate([batch for part in parts for batch in part])) == sorted(window)
    assert len({len(part) for part in parts}) == 1
    assert all(len(batch) <= micro for part in parts for batch in part)
    assert len(parts[0]) <= accumulation


def test_full_window_is_cut_into_full_micro_batches():
    settings = StepSettings(global_batch_size=48, micro_batch_size=4, accumulation_steps=4, num_ranks=3)
    parts = [cut(np.arange(48), lengths_of(48), settings, rank) for rank in range(3)]
    assert [[len(batch) for batch in part] for part in parts] == [[4] * 4] * 3


def test_fewer_rows_than_ranks_leaves_empty_micro_batches_not_missing_ones():
    settings = StepSettings(global_batch_size=16, micro_batch_size=2, accumulation_steps=2, num_ranks=4)
    parts = [cut(np.array([5, 9]), lengths_of(10), settings, rank) for rank in range(4)]
    assert sorted(len(part[0]) for part in parts) == [0, 0, 1, 1]


def test_micro_batches_hold_neighbours_in_length_and_ranks_get_like_amounts():
    lengths = lengths_of(256)
    settings = StepSettings(global_batch_size=256, micro_batch_size=8, accumulation_steps=8, num_ranks=4)
    parts = [cut(np.arange(256), lengths, settings, rank) for rank in range(4)]
    tokens = [sum(int(lengths[batch].sum()) for batch in part) for part in parts]
    assert max(tokens) / min(tokens) < 1.1
    computed = sum(int(lengths[batch].max()) * len(batch) for part in parts for batch in part)
    assert 1 - lengths.sum() / computed < 0.1
    turns = [lengths[np.concatenate([part[turn] for part in parts])] for turn in range(8)]
    assert all(later.max() <= sooner.min() for sooner, later in zip(turns, turns[1:], strict=False))


def test_rows_of_a_rare_length_meet_other_neighbours_in_the_next_epoch():
    """All lengths different: sorted exactly, every epoch would have the same batches."""
    order = RowOrder(np.random.default_rng(0).permutation(2000) + 100, 32, 1)
    epochs = [
        {frozenset(order.window(step).tolist()) for step in range(start, start + 62)} for start in (0, 63)
    ]
    assert not epochs[0] & epochs[1]


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@given(num_rows=st.integers(1, 60), budget=st.integers(1, 120), seed=st.integers(0, 3))
def test_a_token_budget_cuts_the_same_rows_into_batches_that_keep_to_it(num_ranks, num_rows, budget, seed):
    lengths = lengths_of(num_rows, seed)
    settings = StepSettings(
        global_batch_size=num_rows, micro_batch_size=4, accumulation_steps=1, num_ranks=num_ranks
    )
    rows = np.arange(num_rows)
    found = [cut(rows, lengths, settings, rank, budget) for rank in range(num_ranks)]
    assert len({len(each) for each in found}) == 1
    batches = [batch for each in found for batch in each]
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(num_rows))
    for batch in batches:
        assert len(batch) <= 1 or len(batch) * int(lengths[batch].max()) <= budget


def test_b042_ranks_get_the_same_number_of_batches_of_rows_that_do_not_divide():
    """101 rows over two ranks in batches of 10, and by tokens: no rank waits for one that has finished."""
    lengths = lengths_of(101)
    settings = StepSettings(global_batch_size=101, micro_batch_size=10, accumulation_steps=6, num_ranks=2)
    for budget in (None, 70):
        found = [cut(np.arange(101), lengths, settings, rank, budget) for rank in (0, 1)]
        assert len(found[0]) == len(found[1])
        assert sum(len(batch) for each in found for batch in each) == 101

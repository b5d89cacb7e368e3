"""Thinning keeps what stands out; axes have round ticks inside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.report.axis import horizontal, round_ticks, vertical
from launcher.report.figures import shown, told_apart
from launcher.report.series import series, thin

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400)


@given(values=VALUES, buckets=st.integers(1, 20))
def test_what_is_kept_was_logged_and_holds_every_extreme(values: list[float], buckets: int) -> None:
    points = [(float(step), value) for step, value in enumerate(values)]
    kept = thin(points, buckets)
    assert set(kept) <= set(points) and kept == sorted(kept)
    assert kept[0] == points[0] and kept[-1] == points[-1]
    assert min(value for _, value in kept) == min(values) and max(value for _, value in kept) == max(values)
    assert len(kept) <= max(4 * buckets, 4 * (buckets + 1))


def test_values_that_are_no_numbers_are_missing_and_absent_ones_are_nothing() -> None:
    lines = [
        {"step": 1, "loss": 2.0},
        {"step": 2, "loss": None},
        {"step": 3},
        {"step": 4, "loss": float("nan")},
    ]
    found = series(lines, "loss", run=0, label="a")
    assert found.points == ((1.0, 2.0),) and found.missing == (2.0, 4.0)


@given(low=st.floats(-1e9, 1e9), span=st.floats(1e-6, 1e9), about=st.integers(1, 10))
def test_ticks_are_inside_and_not_too_many(low: float, span: float, about: int) -> None:
    high = low + span
    ticks = round_ticks(low, high, about) if high > low else []
    assert len(ticks) <= about + 2
    slack = (high - low) * 1e-3
    assert all(low - slack <= tick <= high + slack for tick in ticks)


@pytest.mark.parametrize(
    ("values", "is_log"), [([1.0, 2.0], False), ([1e-3, 10.0], True), ([0.0, 1e6], False)]
)
def test_an_axis_is_logarithmic_only_where_values_lie_far_apart(values: list[float], is_log: bool) -> None:
    axis = vertical(values, start=100, end=0, may_be_log=True)
    assert axis.is_log is is_log
    assert all(0 <= axis.place(value) <= 100 for value in values)
    assert all(0 <= axis.place(tick) <= 100 for tick in axis.ticks(5))


def test_one_value_and_one_step_have_an_axis() -> None:
    assert 0 <= vertical([0.0], start=100, end=0).place(0.0) <= 100
    assert horizontal([5.0], start=0, end=100).place(5.0) == 0


def test_ticks_of_a_narrow_range_do_not_all_look_the_same() -> None:
    narrow = round_ticks(0.00099989, 0.00100001, 5)
    assert len({*map(shown, narrow)}) < len(narrow), "four figures are too few here"
    words = told_apart(narrow, shown)
    assert len({*words}) == len(words) and max(map(len, words)) <= 9
    assert told_apart([0.0, 0.5, 1.0], shown) == ["0", "0.5", "1"]
    assert told_apart([], shown) == []


@given(low=st.floats(1e-12, 1e9), share=st.floats(1e-5, 10))
def test_ticks_are_told_apart_whatever_the_range(low: float, share: float) -> None:
    ticks = round_ticks(low, low * (1 + share), 5)
    assert len({*told_apart(ticks, shown)}) == len(ticks)

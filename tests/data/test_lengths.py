"""The length of rows: as written, or from a percentile; never beyond the model's positions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.lengths import choose_length
from launcher.data.options import DataOptions, LengthChoice


def test_a_number_is_taken_as_it_is() -> None:
    length = choose_length(100, np.array([5, 300]), 512)
    assert str(length) == "max_length 100: as in the recipe"


def test_a_number_beyond_the_models_positions_is_held_to_them() -> None:
    assert choose_length(1000, np.array([5]), 512).value == 512


def test_b036_percentile_is_rounded_up_to_eight_and_told() -> None:
    lengths = np.arange(1, 101)
    length = choose_length(LengthChoice(percentile=95, cap=512), lengths, 512)
    assert length.value == 96
    assert "95 % of 100 training rows have at most 96 tokens (median 50, longest 100)" in length.reason


def test_b036_percentile_stops_at_robertas_positions() -> None:
    """514 positions begin at the padding id + 1: 512 tokens."""
    length = choose_length(LengthChoice(percentile=99, cap=2000), np.full(50, 700), 512)
    assert length.value == 512
    assert length.reason.endswith("the model's positions end at 512")


def test_cap_holds_before_the_model_does() -> None:
    length = choose_length(LengthChoice(percentile=95, cap=40), np.full(50, 700), 512)
    assert (length.value, length.reason.split(", ")[-1]) == (40, "more than the cap of 40")


@given(
    lengths=st.lists(st.integers(1, 900), min_size=1, max_size=200),
    percentile=st.floats(1, 100),
    cap=st.integers(2, 600),
)
def test_at_least_that_share_of_rows_fits_or_the_cap_is_reached(
    lengths: list[int], percentile: float, cap: int
) -> None:
    value = choose_length(LengthChoice(percentile=percentile, cap=cap), np.array(lengths), None).value
    share = np.mean(np.array(lengths) <= value)
    assert share >= percentile / 100 - 1e-9 or value == cap
    assert value <= cap


def test_most_tokens_is_known_before_reading() -> None:
    assert DataOptions(train_file="a.csv", max_length=77).most_tokens == 77
    assert DataOptions(train_file="a.csv", max_length={"percentile": 90, "cap": 99}).most_tokens == 99

"""Correlations and the squared error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.metrics.regression import ranks, regression_scores

NUMBERS = st.lists(st.integers(-3, 3), min_size=3, max_size=30)


@given(first=NUMBERS, seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=50)
def test_scores_are_those_of_scipy_ties_included(first, seed):
    stats = pytest.importorskip("scipy.stats", reason="scipy is the reference")
    second = np.random.default_rng(seed).integers(-2, 3, len(first))
    if len(set(first)) < 2 or len(set(second.tolist())) < 2:
        return
    found = regression_scores(first, second)
    assert found["pearson"] == pytest.approx(stats.pearsonr(first, second)[0], abs=1e-9)
    assert found["spearman"] == pytest.approx(stats.spearmanr(first, second)[0], abs=1e-9)
    assert found["mse"] == pytest.approx(np.mean((np.array(first) - second) ** 2))


def test_equal_values_share_their_rank():
    assert ranks(np.array([10.0, 20.0, 10.0, 30.0])).tolist() == [1.5, 3.0, 1.5, 4.0]


def test_predictions_that_never_differ_have_no_correlation():
    found = regression_scores([1.0, 1.0], [0.0, 2.0])
    assert found["pearson"] == found["spearman"] == 0.0 and found["mse"] == 1.0

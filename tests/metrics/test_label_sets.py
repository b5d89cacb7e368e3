"""F1 of sets as scikit-learn has it."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from launcher.metrics.label_sets import set_scores


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 20), classes=st.integers(2, 5))
@settings(deadline=None, max_examples=50)
def test_set_scores_are_those_of_scikit_learn(seed, rows, classes):
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(rows, classes)).astype(np.float32)
    labels = (draw.random((rows, classes)) > 0.6).astype(np.float32)
    predicted = (logits > 0).astype(int)
    found = set_scores(logits, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for average in ("micro", "macro"):
            expected = f1_score(labels, predicted, average=average, zero_division=0)
            assert found[f"{average}_f1"] == pytest.approx(expected)
    assert found["accuracy"] == pytest.approx(accuracy_score(labels, predicted))


def test_a_probability_of_one_half_is_not_enough():
    assert set_scores([[0.0, 1.0]], [[1.0, 1.0]])["accuracy"] == 0

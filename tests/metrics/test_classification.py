"""Scores of predicted classes, against scikit-learn."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from launcher.metrics.classification import scores


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=60),
    extra=st.integers(0, 3),
)
def test_scores_are_those_of_scikit_learn(pairs, extra):
    predictions, labels = map(np.array, zip(*pairs, strict=True))
    found = scores(predictions, labels, 6 + extra)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "accuracy": accuracy_score(labels, predictions),
            "macro_f1": f1_score(labels, predictions, average="macro"),
            "weighted_f1": f1_score(labels, predictions, average="weighted"),
        }
    assert found == pytest.approx(expected, abs=1e-12)


def test_class_that_is_only_predicted_lowers_macro_f1():
    assert scores([0, 0, 2], [0, 0, 0], 3)["macro_f1"] == pytest.approx(0.4)


def test_class_that_occurs_nowhere_does_not_count():
    assert scores([0, 1], [0, 1], 7) == {"accuracy": 1.0, "macro_f1": 1.0, "weighted_f1": 1.0}


def test_id_outside_the_classes_is_a_mistake_of_the_program():
    with pytest.raises(AssertionError, match="outside"):
        scores([3], [0], 3)

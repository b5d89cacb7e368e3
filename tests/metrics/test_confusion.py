"""Counts of which class was taken for which, beside scikit-learn's."""

import numpy as np
from sklearn.metrics import confusion_matrix

from launcher.metrics.confusion import confusions


def test_counts_are_scikit_learns_without_the_zeros() -> None:
    draw = np.random.default_rng(0)
    labels, predictions = draw.integers(0, 6, 200), draw.integers(0, 6, 200)
    matrix = np.zeros((6, 6), dtype=int)
    for true, predicted, rows in confusions(predictions, labels):
        matrix[true, predicted] = rows
    assert (matrix == confusion_matrix(labels, predictions)).all()


def test_pairs_that_do_not_occur_are_left_out() -> None:
    assert confusions([2, 2, 0], [2, 1, 0]) == [[0, 0, 1], [1, 2, 1], [2, 2, 1]]

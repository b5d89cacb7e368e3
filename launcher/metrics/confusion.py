"""Which class was taken for which: the counts behind accuracy and F1."""

import numpy as np
import numpy.typing as npt


def confusions(predictions: npt.ArrayLike, labels: npt.ArrayLike) -> list[list[int]]:
    """[true class, predicted class, rows] for each pair that occurs, in order. At most one a row of data."""
    predicted = np.asarray(predictions, dtype=np.int64)
    true = np.asarray(labels, dtype=np.int64)
    assert predicted.shape == true.shape, "as many predictions as labels"
    pairs, counts = np.unique(np.stack([true, predicted], axis=-1), axis=0, return_counts=True)
    return [[int(one), int(other), int(count)] for (one, other), count in zip(pairs, counts, strict=True)]

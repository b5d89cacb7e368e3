"""How near predicted numbers are, and how well they rank."""

import math

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def regression_scores(predictions: npt.ArrayLike, labels: npt.ArrayLike) -> dict[str, float]:
    """`pearson`, `spearman` and `mse` of one number a row. A correlation without variance is 0."""
    predicted = np.asarray(predictions, dtype=np.float64)
    true = np.asarray(labels, dtype=np.float64)
    assert predicted.shape == true.shape and true.ndim == 1 and true.size, "one number for every row"
    return {
        "pearson": _correlation(predicted, true),
        "spearman": _correlation(ranks(predicted), ranks(true)),
        "mse": float(np.square(predicted - true).mean()),
    }


def _correlation(first: Numbers, second: Numbers) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = math.sqrt(float(np.square(first).sum()) * float(np.square(second).sum()))
    return float((first * second).sum()) / size if size else 0.0


def ranks(values: Numbers) -> Numbers:
    """Places from 1 in ascending order; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: Numbers = (ends - counts + 1 + ends) / 2
    return means[inverse]

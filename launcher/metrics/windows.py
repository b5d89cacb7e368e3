"""One answer of a classifier for a row that it saw in several windows: the mean of their logits."""

from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


def mean_of_windows(logits: npt.ArrayLike, sources: Int64) -> Float64:
    """[rows, classes] from [windows, classes]; `sources` says each window's row, from 0 without gaps."""
    values: Any = np.asarray(logits, dtype=np.float64)
    counts = np.bincount(sources)
    columns = [np.bincount(sources, weights=column) / counts for column in values.T]
    return np.stack(columns, axis=1)


def summed_loss(logits: npt.ArrayLike, labels: Int64) -> float:
    """Cross entropy in nats, summed over rows. `logits` [rows, classes], `labels` class ids [rows]."""
    values: Any = np.asarray(logits, dtype=np.float64)
    highest = values.max(axis=1, keepdims=True)
    total = np.log(np.exp(values - highest).sum(axis=1)) + highest[:, 0]
    return float((total - values[np.arange(len(labels)), labels]).sum())

"""F1 of sets of classes, as scikit-learn defines it for indicator matrices."""

import numpy as np
import numpy.typing as npt

THRESHOLD = 0.5


def set_scores(logits: npt.ArrayLike, labels: npt.ArrayLike) -> dict[str, float]:
    """`micro_f1`, `macro_f1` and `accuracy` (the whole set right), [rows, classes], at probability 0.5.

    macro_f1 is the mean over all classes; one that is neither there nor predicted scores 0.
    """
    predicted = np.asarray(logits, dtype=np.float64) > 0  # the sigmoid of 0 is 0.5
    true = np.asarray(labels) > THRESHOLD
    assert predicted.shape == true.shape and true.ndim == 2 and true.size, "a 0/1 row for every row"
    hits = (predicted & true).sum(0)
    both = predicted.sum(0) + true.sum(0)
    f1 = np.divide(2 * hits, both, out=np.zeros(len(both)), where=both > 0)
    return {
        "micro_f1": float(2 * hits.sum() / both.sum()) if both.sum() else 0.0,
        "macro_f1": float(f1.mean()),
        "accuracy": float((predicted == true).all(1).mean()),
    }

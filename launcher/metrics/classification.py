"""Accuracy and F1 of predicted classes, as scikit-learn's defaults define them."""

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


def scores(predictions: npt.ArrayLike, labels: npt.ArrayLike, num_labels: int) -> dict[str, float]:
    """`accuracy`, `macro_f1`, `weighted_f1` of class ids 0..num_labels-1.

    macro_f1 is the mean over the classes that occur among labels or predictions; a class without a true
    positive scores 0. weighted_f1 weighs each class by its number of labels.
    """
    predicted = np.asarray(predictions, dtype=np.int64)
    true = np.asarray(labels, dtype=np.int64)
    assert predicted.shape == true.shape and true.size, "as many predictions as labels, and at least one"
    hits = _counts(true[true == predicted], num_labels)
    num_true, num_predicted = _counts(true, num_labels), _counts(predicted, num_labels)
    present = (num_true + num_predicted) > 0
    f1 = 2 * hits[present] / (num_true + num_predicted)[present]
    return {
        "accuracy": float((true == predicted).mean()),
        "macro_f1": float(f1.mean()),
        "weighted_f1": float((f1 * num_true[present]).sum() / true.size),
    }


def _counts(ids: Ids, num_labels: int) -> Ids:
    counts = np.bincount(ids, minlength=num_labels)
    assert len(counts) == num_labels, "a class id outside 0..num_labels-1"
    return counts

"""How often each class occurs: told, and weighed where the recipe asks for it."""

from collections.abc import Sequence

import numpy as np

from launcher.data.examples import Examples
from launcher.data.ragged import Int64

MUCH = 10  # times as many rows of one class as of another
FEW = 30  # rows of a class in an evaluation set: below, its F1 moves by several points a row


def class_counts(examples: Examples, num_classes: int) -> Int64 | None:
    """Rows of each class, int64[classes]; None where rows have no class."""
    labels = examples.labels
    if labels is None or (labels.ndim == 1 and labels.dtype != np.int64):
        return None
    if labels.ndim == 2:
        return np.asarray(labels.sum(0), dtype=np.int64)
    return np.bincount(labels, minlength=num_classes).astype(np.int64)


def balanced_weights(counts: Sequence[int], num_rows: int) -> tuple[float, ...]:
    """Rows / (classes x rows of the class), as scikit-learn's class_weight="balanced".

    The weights of all training rows sum to their number; a class without rows gets 1.
    """
    present = sum(count > 0 for count in counts)
    return tuple(num_rows / (present * count) if count else 1.0 for count in counts)


def imbalance(train: Examples, evaluation: Examples | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """What the class counts mean for training and for the metric."""
    counts = class_counts(train, len(names))
    if counts is None or not len(names):
        return ()
    lines = []
    most, least = int(counts.argmax()), int(counts.argmin())
    if counts[most] >= MUCH * max(1, counts[least]):
        lines.append(
            f"classes are uneven: {names[most]} has {counts[most]:,} training rows, {names[least]} "
            f"{counts[least]:,}; macro_f1 tells what accuracy hides, data.class_weights=balanced weighs them"
        )
    held = None if evaluation is None else class_counts(evaluation, len(names))
    if held is not None and len(evaluation or ()) >= 10 * FEW:
        few = [f"{name} {count:,}" for name, count in zip(names, held, strict=True) if count < FEW]
        if few:
            lines.append(
                f"fewer than {FEW} evaluation rows of: {', '.join(few)}; macro_f1 will be noisy there"
            )
    return tuple(lines)

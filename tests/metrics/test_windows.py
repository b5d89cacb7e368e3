"""Rows that were seen in several windows are judged by the mean of their logits."""

import numpy as np
import pytest
import torch

from launcher.metrics.windows import mean_of_windows, summed_loss


def test_each_row_is_the_mean_of_its_windows_in_any_order() -> None:
    logits = [[1.0, 0.0], [5.0, 5.0], [3.0, 2.0]]
    assert mean_of_windows(logits, np.array([0, 1, 0])).tolist() == [[2.0, 1.0], [5.0, 5.0]]


def test_loss_is_the_cross_entropy_that_torch_has() -> None:
    logits = np.random.default_rng(0).normal(0, 50, (7, 4))
    labels = np.array([0, 3, 1, 2, 2, 0, 1])
    expected = torch.nn.functional.cross_entropy(
        torch.from_numpy(logits), torch.from_numpy(labels), reduction="sum"
    )
    assert summed_loss(logits, labels) == pytest.approx(float(expected))

"""The losses of labelled rows are torch's own, summed, and leave out what has no label."""

import pytest
import torch
from torch.nn import functional as F

from launcher.losses.labelled_torch import summed_label_loss


def test_class_ids_are_cross_entropy_with_and_without_weights():
    torch.manual_seed(0)
    logits, labels = torch.randn(6, 3), torch.tensor([0, 2, 1, 1, -100, 0])
    plain = F.cross_entropy(logits[labels >= 0], labels[labels >= 0], reduction="sum")
    assert torch.allclose(summed_label_loss(logits, labels), plain)
    weights = torch.tensor([0.5, 1.0, 4.0])
    each = F.cross_entropy(logits[labels >= 0], labels[labels >= 0], reduction="none")
    expected = (each * weights[labels[labels >= 0]]).sum()
    assert torch.allclose(summed_label_loss(logits, labels, weights), expected)
    assert not torch.allclose(expected, plain)


def test_sets_are_binary_cross_entropy_of_every_class():
    torch.manual_seed(0)
    logits, labels = torch.randn(5, 3), (torch.rand(5, 3) > 0.5).float()
    expected = F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
    assert torch.allclose(summed_label_loss(logits, labels), expected)
    weights = torch.tensor([1.0, 2.0, 3.0])
    expected = F.binary_cross_entropy_with_logits(logits, labels, reduction="sum", pos_weight=weights)
    assert torch.allclose(summed_label_loss(logits, labels, weights), expected)


def test_numbers_are_squared_error_and_minus_100_is_one_of_them():
    logits, labels = torch.tensor([[1.0], [-99.0]]), torch.tensor([3.0, -100.0])
    assert summed_label_loss(logits, labels).item() == pytest.approx(5.0)


@pytest.mark.parametrize("shape", [(1,), (1, 4)])
def test_row_without_a_label_adds_nothing_and_its_gradient_is_zero(shape):
    logits = torch.randn(1, shape[-1] if len(shape) == 2 else 1, requires_grad=True)
    loss = summed_label_loss(logits, torch.full(shape, torch.nan))
    loss.backward()
    assert loss.item() == 0 and logits.grad.abs().sum().item() == 0


def test_half_precision_logits_are_summed_in_fp32():
    logits = torch.full((1000, 1), 8.0, dtype=torch.bfloat16)
    loss = summed_label_loss(logits, torch.full((1000,), 0.5))
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(1000 * 7.5**2)


def test_parts_of_a_batch_add_up_to_the_whole():
    """Divided by the global count, micro batches then give the loss of one large batch."""
    torch.manual_seed(0)
    for labels in (torch.rand(8), (torch.rand(8, 3) > 0.5).float(), torch.randint(0, 3, (8,))):
        logits = torch.randn(8, 3)
        whole = summed_label_loss(logits, labels)
        parts = sum(summed_label_loss(logits[at : at + 3], labels[at : at + 3]) for at in range(0, 8, 3))
        assert torch.allclose(whole, parts)

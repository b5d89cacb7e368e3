"""The chunked loss against the plain one: value, gradients, memory, precision."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from launcher.losses.cross_entropy_torch import chunk_rows, chunked_cross_entropy, shifted_cross_entropy


def case(*, bias: bool, dtype: torch.dtype = torch.float64) -> tuple[Tensor, nn.Linear, Tensor]:
    torch.manual_seed(0)
    head = nn.Linear(16, 97, bias=bias, dtype=dtype)
    hidden = torch.randn(3, 11, 16, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, 97, (3, 11))
    labels[0, :5] = labels[2, 8:] = -100
    return hidden, head, labels


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 4, 30, 1000])
def test_value_and_gradients_equal_the_plain_loss(bias: bool, rows: int) -> None:
    hidden, head, labels = case(bias=bias, dtype=torch.float32)
    plain = shifted_cross_entropy(head(hidden), labels) * 0.37
    wanted = torch.autograd.grad(plain, [hidden, *head.parameters()])
    chunked = chunked_cross_entropy(hidden, head, labels, max_bytes=rows * 97 * 4) * 0.37
    found = torch.autograd.grad(chunked, [hidden, *head.parameters()])
    torch.testing.assert_close(chunked, plain, rtol=1e-6, atol=1e-6)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_a_frozen_head_still_passes_the_gradient_on() -> None:
    hidden, head, labels = case(bias=True, dtype=torch.float32)
    head.requires_grad_(False)
    chunked_cross_entropy(hidden, head, labels, 400).backward()
    assert hidden.grad is not None and float(hidden.grad.norm()) > 0
    assert head.weight.grad is None


def test_a_batch_without_targets_gives_zero_and_zero_gradients() -> None:
    hidden, head, labels = case(bias=False, dtype=torch.float32)
    loss = chunked_cross_entropy(hidden, head, torch.full_like(labels, -100), 400)
    loss.backward()
    assert float(loss.detach()) == 0 and hidden.grad is not None and float(hidden.grad.abs().max()) == 0


class _Largest(TorchDispatchMode):
    """Bytes of the largest [tokens, vocabulary] tensor that any operation makes; 16 rows are weights."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        found = func(*args, **(kwargs or {}))
        if (
            isinstance(found, Tensor)
            and found.ndim == 2
            and found.shape == (found.shape[0], self.vocabulary)
            and len(found) != 16
        ):
            self.largest = max(self.largest, found.numel() * 4)
        return found


def test_never_more_than_the_given_bytes_of_logits() -> None:
    hidden, _, _ = case(bias=False, dtype=torch.float32)
    head = nn.Linear(16, 5000, bias=False)
    labels = torch.randint(0, 5000, (3, 11))
    head.requires_grad_(False)
    limit = 7 * 5000 * 4
    with _Largest(5000) as seen:
        chunked_cross_entropy(hidden, head, labels, limit).backward()
    assert 0 < seen.largest <= limit
    with _Largest(5000) as plain:
        shifted_cross_entropy(head(hidden), labels).backward()
    assert plain.largest > limit


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_close_under_autocast(dtype: torch.dtype) -> None:
    hidden, head, labels = case(bias=False, dtype=torch.float32)
    scale = 2.0**16 if dtype is torch.float16 else 1.0
    wanted = torch.autograd.grad(shifted_cross_entropy(head(hidden), labels), hidden)[0]
    with torch.autocast("cpu", dtype=dtype):
        loss = chunked_cross_entropy(hidden, head, labels, 400)
    found = torch.autograd.grad(loss * scale, hidden)[0] / scale
    assert float((found - wanted).norm() / wanted.norm()) < 0.02


def test_one_row_fits_whatever_the_limit() -> None:
    assert chunk_rows(250_880, 1) == 1
    assert chunk_rows(1000, 8000) == 2


def test_an_evaluation_computes_no_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ...]] = []
    original = torch.zeros_like

    def counted(tensor: Any, **more: Any) -> Any:
        made.append(tuple(tensor.shape))
        return original(tensor, **more)

    monkeypatch.setattr(torch, "zeros_like", counted)
    head = nn.Linear(8, 32, bias=False)
    hidden, labels = torch.randn(2, 5, 8), torch.randint(0, 32, (2, 5))
    with torch.no_grad():
        alone = chunked_cross_entropy(hidden, head, labels, 256)
    assert made == []
    assert torch.equal(chunked_cross_entropy(hidden, head, labels, 256), alone) and (32, 8) in made

"""Cross entropy summed over targets; for causal LMs also in chunks that never hold all the logits."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

IGNORED = -100


def summed_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Sum over targets in fp32. `logits` [rows, classes], `targets` [rows], -100 is left out."""
    return F.cross_entropy(logits.float(), targets, reduction="sum", ignore_index=IGNORED)


def shifted_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Sum over next-token targets. `logits` [rows, length, vocabulary], `labels` [rows, length]."""
    return summed_cross_entropy(logits.flatten(0, 1), next_labels(labels))


def next_labels(labels: Tensor) -> Tensor:
    """Every position's target, flat: the label after it, none at the end. Logits need no shifted copy."""
    return F.pad(labels[:, 1:], (0, 1), value=IGNORED).flatten()


def chunk_rows(vocabulary: int, max_bytes: int) -> int:
    """How many tokens' fp32 logits fit `max_bytes`; at least one."""
    return max(1, max_bytes // (4 * vocabulary))


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Loss and gradients chunk by chunk in the forward pass, as in Liger Kernel's fused linear loss.

    The gradient of a sum is known as soon as its logits are, so logits of earlier chunks are never
    needed again: the peak is one chunk's fp32 logits plus its copy in the compute type.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        rows: int,
        learns: bool,
    ) -> Tensor:
        # `needs_input_grad` looks at the inputs alone: it is true in an evaluation as well.
        wanted = [learns and needed for needed in ctx.needs_input_grad]
        matrix = weight.to(hidden.dtype)
        loss = torch.zeros((), dtype=torch.float32, device=hidden.device)
        grad_hidden = torch.zeros_like(hidden) if wanted[0] else None
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if wanted[1] else None
        grad_bias = torch.zeros_like(bias, dtype=torch.float32) if bias is not None and wanted[2] else None
        for start in range(0, hidden.shape[0], rows):
            part, goal = hidden[start : start + rows], targets[start : start + rows]
            logits = part @ matrix.T
            logits = logits.float() if bias is None else logits.float() + bias.float()
            kept = goal != IGNORED
            index = goal.clamp_min(0)[:, None]
            total = torch.logsumexp(logits, dim=-1)
            loss += ((total - logits.gather(1, index)[:, 0]) * kept).sum()
            if not any(wanted):
                continue
            grad = logits.sub_(total[:, None]).exp_()
            grad.scatter_add_(1, index, grad.new_full((1, 1), -1.0).expand_as(index))
            grad *= kept[:, None]
            small = grad.to(hidden.dtype)
            if grad_hidden is not None:
                grad_hidden[start : start + rows] = small @ matrix
            if grad_weight is not None:
                grad_weight += (small.T @ part).float()
            if grad_bias is not None:
                grad_bias += grad.sum(0)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        ctx.dtypes = (weight.dtype, None if bias is None else bias.dtype)
        return loss

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        scale = upstream[0]
        hidden, weight, bias = ctx.saved_tensors
        weight_dtype, bias_dtype = ctx.dtypes
        # fp16: multiplied in fp32 first, so that a loss scale above 65,504 does not overflow.
        return (
            None if hidden is None else (hidden.float() * scale).to(hidden.dtype),
            None if weight is None else (weight * scale).to(weight_dtype),
            None if bias is None else (bias * scale).to(bias_dtype),
            None,
            None,
            None,
        )


def chunked_cross_entropy(hidden: Tensor, head: nn.Linear, labels: Tensor, max_bytes: int) -> Tensor:
    """Sum over next-token targets without ever holding more than `max_bytes` of fp32 logits.

    `hidden` [rows, length, width] in the compute type, `labels` [rows, length] (unshifted).
    Gradients equal those of the plain loss up to rounding. Twice differentiating is not supported.
    """
    flat, targets = hidden.flatten(0, 1), next_labels(labels)
    rows = chunk_rows(head.out_features, max_bytes)
    if torch.is_autocast_enabled(flat.device.type):
        flat = flat.to(torch.get_autocast_dtype(flat.device.type))
    with torch.autocast(flat.device.type, enabled=False):
        learns = torch.is_grad_enabled()
        loss: Tensor = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            flat, head.weight, head.bias, targets, rows, learns
        )
        return loss

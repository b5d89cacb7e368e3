"""The loss of labelled rows, summed over targets: classes, sets of classes, or numbers."""

import torch
from torch import Tensor
from torch.nn import functional as F

from launcher.losses.cross_entropy_torch import summed_cross_entropy


def summed_label_loss(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Sum in fp32 over what is to be predicted; the labels' own type says which loss it is.

    int64[rows]: cross entropy, -100 left out, `weights` by class. float[rows, classes]: binary cross
    entropy of every class, `weights` for where it holds. float[rows]: squared error. NaN is left out.
    """
    if not labels.is_floating_point():
        return _classes(logits, labels, weights)
    logits = logits.float() if labels.dim() == 2 else logits.float()[:, 0]
    known = ~torch.isnan(labels)
    goals = torch.where(known, labels, 0.0).float()
    if labels.dim() == 2:
        losses = F.binary_cross_entropy_with_logits(logits, goals, pos_weight=weights, reduction="none")
    else:
        losses = (logits - goals).square()
    return torch.where(known, losses, 0.0).sum()


def _classes(logits: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return summed_cross_entropy(logits, labels)
    return F.cross_entropy(logits.float(), labels, weight=weights, reduction="sum", ignore_index=-100)

"""One global step: every micro batch forward and backward, normalised over the whole global batch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from launcher.backends.strategy_torch import Strategy
from launcher.step.module import seed_micro_batch

Batch = dict[str, Tensor]


def accumulate(
    strategy: Strategy,
    micro_batches: Sequence[Batch],
    *,
    num_targets: int,
    seed: int,
    step: int,
    rank: int,
    spoilt: bool = False,
) -> Tensor:
    """Run this rank's micro batches; returns its share of the global mean loss, on the device.

    Every micro batch's summed loss is divided by `num_targets`, the targets (labelled rows, or trained
    tokens) of the global batch over all ranks: the result does not depend on how rows were cut.
    `spoilt` makes every loss NaN: all the work of a step, and no backend will update anything after it.
    """
    divisor = torch.nan if spoilt else max(1, num_targets)
    share = torch.zeros((), device=strategy.parts.device)
    for index, batch in enumerate(micro_batches):
        seed_micro_batch(seed, step, index, rank)
        on_device = {
            key: tensor.to(strategy.parts.device, non_blocking=True) for key, tensor in batch.items()
        }
        with strategy.accumulating(is_last=index == len(micro_batches) - 1):
            loss, _ = strategy.module(**on_device)
            mean = loss / divisor
            strategy.backward(mean)
        share += mean.detach()
    return share

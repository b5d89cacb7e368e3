"""What a model is given so that the samples of a packed row do not see one another.

Position ids start again at 0 with every sample: they alone say where samples begin. Flash attention
reads the borders from them (one row of everything, no mask); the other kernels get a 4-D mask of blocks.
"""

import torch
from torch import Tensor


def is_flash(kernel: str) -> bool:
    """Whether an attention implementation takes borders from position ids."""
    return kernel.startswith("flash")


def block_mask(position_ids: Tensor) -> Tensor:
    """True where a query [row, 1, query, key] may look: at earlier ids of its own sample, and at itself."""
    sample = (position_ids == 0).cumsum(-1)
    same = sample[:, None, :, None] == sample[:, None, None, :]
    length = position_ids.shape[-1]
    return same & torch.ones(length, length, dtype=torch.bool, device=position_ids.device).tril()


def packed_inputs(
    input_ids: Tensor, position_ids: Tensor, labels: Tensor, kernel: str
) -> tuple[dict[str, Tensor | None], Tensor]:
    """(arguments for the model, labels) of packed rows, for an attention implementation.

    All tensors are [rows, length], position ids from 0 in every sample. For flash attention everything
    becomes one row: it finds borders only there. Nothing predicts a sample's first id, so the shift of the
    loss may run over the borders.
    """
    if is_flash(kernel):
        flat = [tensor.reshape(1, -1) for tensor in (input_ids, position_ids, labels)]
        return {"input_ids": flat[0], "position_ids": flat[1], "attention_mask": None}, flat[2]
    mask = block_mask(position_ids)
    if kernel == "eager":  # adds its mask to the scores
        lowest = torch.finfo(torch.float32).min
        mask = torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, lowest)
    return {"input_ids": input_ids, "position_ids": position_ids, "attention_mask": mask}, labels

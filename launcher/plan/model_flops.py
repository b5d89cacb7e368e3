"""Operations that a model's training needs a token, whatever is recomputed, padded or left out: the U of MFU.

Formula: PaLM (Chowdhery et al. 2022, arXiv:2204.02311, appendix B): 6 N a token for the products (2 forward,
2 for the inputs' gradients, 2 for the weights') and 12 L H Q T for attention's scores and their use, with L
layers of H heads of size Q and rows of T tokens. Here N is counted exactly: the weights that a token is
multiplied with (the blocks' linear layers and a language model's head; no embedding, no norm, no bias).
"""

from collections.abc import Iterable

from launcher.models.shape import ModelShape


def product_params(shape: ModelShape) -> int:
    """Weights that each token is multiplied with: blocks, and the head of a language model (tied or not)."""
    block = sum(each.weight_params for each in shape.linears)
    head = shape.hidden_size * shape.vocab_size if shape.task == "causal_lm" else 0
    return shape.num_layers * block + head


def flops_per_token(shape: ModelShape, *, trained: int, is_adapter: bool, row_length: float) -> float:
    """Operations of one token's forward and backward pass, summed over all ranks' share of it.

    `trained`: elements that get gradients. An adapter's are spread over the blocks, so that every layer's
    input gradient is needed: 4 a frozen weight and 6 a trained one. Otherwise what is frozen is taken to lie
    below what is trained: 2 a frozen weight and 6 a trained one. `row_length`: see `mean_row_length`.
    """
    weights = product_params(shape)
    frozen_and_trained = 4.0 * weights + 6.0 * trained
    products = frozen_and_trained if is_adapter else 2.0 * weights + 4.0 * min(weights, trained)
    return products + 12.0 * shape.num_layers * shape.num_heads * shape.head_dim * row_length


def mean_row_length(lengths: Iterable[int]) -> float:
    """The length of the row that a token stands in, in the mean over tokens: attention grows with it."""
    found = [int(length) for length in lengths]
    total = sum(found)
    return sum(length * length for length in found) / total if total else 0.0

"""Measures of a language model."""

import math


def perplexity(loss_sum: float, num_tokens: int) -> float:
    """Exp of the mean loss a token; infinite where that is beyond a float, NaN without tokens."""
    if not num_tokens:
        return math.nan
    mean = loss_sum / num_tokens
    try:
        return math.exp(mean)
    except OverflowError:
        return math.inf

"""How many tokens a row may have: the recipe's number, or a percentile of the training rows."""

from dataclasses import dataclass

import numpy as np

from launcher.data.options import LengthChoice
from launcher.data.ragged import Int64

_ROUND_TO = 8


@dataclass(frozen=True, kw_only=True)
class Length:
    """Most tokens of a row, and why."""

    value: int
    reason: str

    def __str__(self) -> str:
        """As a line of the plan."""
        return f"max_length {self.value}: {self.reason}"


def choose_length(asked: int | LengthChoice, whole: Int64, limit: int | None) -> Length:
    """The length for rows of `whole` tokens (training rows, uncut); `limit`: the model's positions.

    A percentile is rounded up to a multiple of 8, then held to the cap and to the limit.
    """
    if isinstance(asked, int):
        return _fixed(asked, limit)
    if not len(whole):
        return _held(asked.cap, f"no rows to measure; the cap of {asked.cap}", limit)
    found = int(np.percentile(whole, asked.percentile, method="higher"))
    rounded = -(-found // _ROUND_TO) * _ROUND_TO
    said = f"{asked.percentile:g} % of {len(whole):,} training rows have at most {found} tokens"
    said += f" (median {int(np.median(whole))}, longest {int(whole.max())})"
    if rounded > asked.cap:
        return _held(asked.cap, f"{said}, more than the cap of {asked.cap}", limit)
    return _held(max(2, rounded), f"{said}, rounded up to a multiple of {_ROUND_TO}", limit)


def _fixed(asked: int, limit: int | None) -> Length:
    if limit is not None and limit < asked:
        return Length(value=limit, reason=f"the model's positions end there; the recipe says {asked}")
    return Length(value=asked, reason="as in the recipe")


def _held(value: int, reason: str, limit: int | None) -> Length:
    if limit is not None and limit < value:
        return Length(value=limit, reason=f"{reason}; the model's positions end at {limit}")
    return Length(value=value, reason=reason)

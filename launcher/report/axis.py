"""An axis: from values to places on the paper, with ticks at round numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_DECADES = 2.5  # values that lie further apart are drawn on a logarithmic axis


@dataclass(frozen=True, kw_only=True)
class Axis:
    """`low` and `high` are values; `start` and `end` places on the paper."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """Where a value lies."""
        low, high, value = (self._turned(each) for each in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def _turned(self, value: float) -> float:
        return math.log10(value) if self.is_log else value

    def ticks(self, about: int) -> list[float]:
        """Round values inside."""
        if self.is_log:
            powers = range(
                math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1
            )
            if len(powers) >= 2:
                return [10.0**power for power in powers][:: -(-len(powers) // (about + 1))]
        return round_ticks(self.low, self.high, about)


def round_ticks(low: float, high: float, about: int) -> list[float]:
    """About so many round values between two; far from 0 a float may round one out of them."""
    rough = (high - low) / max(1, about)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    found = (place * step for place in range(first, math.floor(high / step + 1e-9) + 1))
    slack = (high - low) * 1e-3
    return [tick for tick in found if low - slack <= tick <= high + slack]


def horizontal(values: Sequence[float], *, start: float, end: float) -> Axis:
    """Of steps: from the first to the last."""
    low, high = min(values), max(values)
    return Axis(low=low, high=high if high > low else low + 1, start=start, end=end)


def vertical(values: Sequence[float], *, start: float, end: float, may_be_log: bool = False) -> Axis:
    """Of values, with a little room; logarithmic where that is meant and they lie far apart."""
    low, high = min(values), max(values)
    if may_be_log and low > 0 and math.log10(high / low) > _DECADES:
        return Axis(low=low / 1.1, high=high * 1.1, start=start, end=end, is_log=True)
    room = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    bottom = 0.0 if 0 <= low <= 0.3 * high else low - room
    return Axis(low=bottom, high=high + room, start=start, end=end)

"""Tells a step that stands far out of those before it, by their median: outliers do not move a median."""

from collections import deque
from dataclasses import dataclass
from statistics import median

# Steps that are looked back on; fewer than the second number tell nothing yet.
WINDOW, FEWEST = 64, 20
# How many robust standard deviations above the median: about one step in 10^9 of normal noise.
DEVIATIONS = 6.0
# At least so large a part of the median beside it: losses that hardly differ are no noise to go by.
SMALLEST_PART = 0.5
# Gradient norms grow tenfold when a model leaves its first plateau: no news.
SMALLEST_PART_OF_NORMS = 20.0
# A median absolute deviation of normally distributed numbers is so much of their standard deviation.
_MAD_OF_NORMAL = 0.6745
# Steps after a spike that are not told again: a spike has a tail.
QUIET_STEPS = 10


@dataclass(frozen=True, kw_only=True)
class Spike:
    """A number far above the median of the steps before it."""

    value: float
    median: float

    @property
    def factor(self) -> float:
        """How many times the median."""
        return self.value / self.median


class Spikes:
    """One series of numbers, finite and not negative, looked at in order."""

    def __init__(self, smallest_part: float = SMALLEST_PART) -> None:
        """Nothing is known yet. A spike is `smallest_part` of the median beside it, at least."""
        self.smallest_part = smallest_part
        self.past: deque[float] = deque(maxlen=WINDOW)
        self.quiet = 0

    def add(self, value: float) -> Spike | None:
        """Take in a number; a Spike where it stands out and none was told shortly before."""
        found = self._judge(value) if len(self.past) >= FEWEST else None
        self.past.append(value)
        self.quiet = max(0, self.quiet - 1)
        if found is None or self.quiet:
            return None
        self.quiet = QUIET_STEPS
        return found

    def _judge(self, value: float) -> Spike | None:
        if value <= (1 + self.smallest_part) * min(self.past):  # below any limit: nothing is sorted
            return None
        middle = median(self.past)
        deviation = median(abs(each - middle) for each in self.past) / _MAD_OF_NORMAL
        far = middle + max(DEVIATIONS * deviation, self.smallest_part * middle)
        return Spike(value=value, median=middle) if middle > 0 and value > far else None

"""How long rows are, and what each choice of a length would cut and pad."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from launcher.data.order import RowOrder
from launcher.data.ragged import Int64

Unit = Literal["tokens", "words", "characters"]
PERCENTILES = (50, 95, 99)
BATCH = 32


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A max_length: the share of rows that it cuts, of tokens that it keeps, and of padding computed.

    Padding is the share of computed positions that hold none: `padding_fixed` pads every row to the
    length, `padding_dynamic` to the longest of 32 drawn rows, `padding_grouped` of 32 rows of like length.
    """

    max_length: int
    cut_rows: float
    kept_tokens: float
    padding_fixed: float
    padding_dynamic: float
    padding_grouped: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Lengths of rows, uncut. `histogram`: (from, to, rows), the bounds included."""

    unit: Unit
    num_rows: int
    total: int
    mean: float
    p50: int
    p95: int
    p99: int
    max: int
    histogram: tuple[tuple[int, int, int], ...]
    choices: tuple[Choice, ...]

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def measure(lengths: Int64, unit: Unit, choices: Sequence[int] = ()) -> Measured:
    """All that is told about the lengths of rows; at least one row. `choices` are told beside the usual."""
    p50, p95, p99 = (int(np.percentile(lengths, each, method="higher")) for each in PERCENTILES)
    longest = int(lengths.max())
    asked = {_rounded(each) for each in (p50, p95, p99, longest)} | {*choices}
    wanted = sorted(each for each in asked if each >= 2)
    return Measured(
        unit=unit,
        num_rows=len(lengths),
        total=int(lengths.sum()),
        mean=round(float(lengths.mean()), 2),
        p50=p50,
        p95=p95,
        p99=p99,
        max=longest,
        histogram=tuple(_histogram(lengths)),
        choices=tuple(_choice(lengths, each) for each in wanted),
    )


def _rounded(length: int) -> int:
    """Up to a multiple of 8."""
    return -(-length // 8) * 8


def _histogram(lengths: Int64) -> list[tuple[int, int, int]]:
    """Rows between powers of two."""
    top = max(1, int(lengths.max()))
    bounds = [0, *(2**power for power in range(top.bit_length() + 1))]
    counts, _ = np.histogram(lengths, bins=np.array(bounds))
    ranges = zip(bounds[:-1], bounds[1:], counts.tolist(), strict=True)
    return [(start, end - 1, count) for start, end, count in ranges if count]


def _choice(lengths: Int64, max_length: int) -> Choice:
    kept = np.minimum(lengths, max_length)
    real = max(1, int(kept.sum()))
    return Choice(
        max_length=max_length,
        cut_rows=_share(int((lengths > max_length).sum()), len(lengths)),
        kept_tokens=_share(real, int(lengths.sum())),
        padding_fixed=round(1 - real / (max_length * len(kept)), 4),
        padding_dynamic=round(1 - real / _computed(kept, grouped=False), 4),
        padding_grouped=round(1 - real / _computed(kept, grouped=True), 4),
    )


def _share(part: int, whole: int) -> float:
    return round(part / max(1, whole), 4)


def _computed(lengths: Int64, *, grouped: bool) -> int:
    """Positions of one epoch in batches of 32, each padded to its longest row."""
    order = RowOrder(lengths, BATCH, 0, grouped)
    total = 0
    for step in range(order.steps_per_epoch):
        rows = lengths[order.window(step)]
        total += int(rows.max()) * len(rows)
    return max(1, total)

"""Numbers out of files that anything may have written, and numbers as people read them."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from launcher.units import format_bytes, format_seconds

NONE = "–"


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def at(data: Any, *keys: str) -> Any:
    """The value below nested keys; None where one of them is not there."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def shown(value: float | None) -> str:
    """Four figures, without more zeros than are needed."""
    if value is None:
        return NONE
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"


def told_apart(values: Sequence[float], words: Callable[[float], str], most: int = 9) -> list[str]:
    """Values beside one another, as for the ticks of an axis: so many figures that no two look the same.

    More than `most` characters would not fit; a power of ten is shorter there.
    """
    found = [words(value) for value in values]
    for figures in range(5, 10):
        if len({*found}) == len(found) and max(map(len, found), default=0) <= most:
            break
        plain = [f"{value:.{figures}g}" for value in values]
        powers = [re.sub(r"e([+-])0*", r"e\1", f"{value:.{figures - 1}e}") for value in values]
        found = plain if max(map(len, plain), default=0) <= most else powers
    return found


def in_bytes(value: Any) -> str:
    """Bytes with their unit."""
    found = number(value)
    return NONE if found is None else format_bytes(found)


def in_seconds(value: Any) -> str:
    """A time as people say it."""
    found = number(value)
    return NONE if found is None else format_seconds(found)

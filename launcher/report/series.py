"""One curve of one run, thinned so that nothing that stands out is lost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.report.figures import number

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Series:
    """`points` by step. `missing`: steps whose value is no finite number. `kind`: train or eval."""

    run: int
    label: str
    points: tuple[Point, ...]
    missing: tuple[float, ...] = ()
    kind: str = "train"


def series(
    lines: Iterable[dict[str, Any]], key: str, *, run: int, label: str, kind: str = "train", per: float = 1.0
) -> Series:
    """The values of `key` in units of `per`; lines without the key are passed over."""
    points, missing = [], []
    for line in lines:
        if key not in line:
            continue
        value, step = number(line[key]), float(line["step"])
        if value is None:
            missing.append(step)
        else:
            points.append((step, value / per))
    return Series(run=run, label=label, points=tuple(points), missing=tuple(missing), kind=kind)


def thin(points: Sequence[Point], buckets: int) -> list[Point]:
    """At most four points a bucket of steps: the first, the lowest, the highest, the last.

    Nothing is averaged: every point that is kept was logged.
    """
    if len(points) <= 4 * buckets:
        return [*points]
    first, last = points[0][0], points[-1][0]
    width = (last - first) / buckets or 1.0
    kept: list[Point] = []
    start = 0
    for place in range(1, len(points) + 1):
        if place == len(points) or _bucket(points[place], first, width) != _bucket(
            points[start], first, width
        ):
            kept += _extremes(points[start:place])
            start = place
    return kept


def _bucket(point: Point, first: float, width: float) -> int:
    return int((point[0] - first) / width)


def _extremes(part: Sequence[Point]) -> list[Point]:
    chosen = {part[0], part[-1], min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])}
    return sorted(chosen)

"""The comparison as bars in an SVG: quality with its spread, speed, memory, trained parameters."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from launcher.report.compare_table import Row
from launcher.units import MIB

_BAR, _GAP, _PANEL, _LABEL, _VALUE, _TOP = 18, 8, 190, 220, 70, 34
_COLOURS = ("#31688e", "#35b779", "#b5543c", "#6a51a3")


@dataclass(frozen=True, kw_only=True)
class _Panel:
    title: str
    value: Callable[[Row], float | None]
    shown: Callable[[float], str]
    spread: Callable[[Row], float | None] = lambda row: None


def svg(rows: Sequence[Row], metric: str) -> str:
    """One panel a figure, one bar a setting; a setting that failed has no bar."""
    panels = [each for each in _panels(metric) if any(each.value(row) is not None for row in rows)]
    width = _LABEL + len(panels) * (_PANEL + _VALUE)
    height = _TOP + len(rows) * (_BAR + _GAP) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *(_label(row, index) for index, row in enumerate(rows)),
    ]
    for number, panel in enumerate(panels):
        left = _LABEL + number * (_PANEL + _VALUE)
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(f'<text x="{left}" y="20" font-weight="bold">{escape(panel.title)}</text>')
        parts += _bars(rows, panel, left, colour)
    return "\n".join([*parts, "</svg>", ""])


def _panels(metric: str) -> list[_Panel]:
    return [
        _Panel(
            title=metric, value=lambda r: r.quality, shown=lambda v: f"{v:.4f}", spread=lambda r: r.spread
        ),
        _Panel(title="rows/s", value=lambda r: r.samples_per_s, shown=lambda v: f"{v:.1f}"),
        _Panel(title="peak memory, MiB", value=lambda r: _mib(_memory(r)), shown=lambda v: f"{v:,.0f}"),
        _Panel(
            title="trained parameters",
            value=lambda r: None if r.trained_parameters is None else float(r.trained_parameters),
            shown=lambda v: f"{v:,.0f}",
        ),
    ]


def _memory(row: Row) -> int | None:
    return row.predicted_bytes if row.measured_bytes is None else row.measured_bytes


def _mib(amount: int | None) -> float | None:
    return None if amount is None else amount / MIB


def _y(index: int) -> int:
    return _TOP + index * (_BAR + _GAP)


def _label(row: Row, index: int) -> str:
    text = row.label if len(row.label) <= 34 else f"{row.label[:33]}…"
    return f'<text x="{_LABEL - 8}" y="{_y(index) + 13}" text-anchor="end">{escape(text)}</text>'


def _bars(rows: Sequence[Row], panel: _Panel, left: int, colour: str) -> list[str]:
    values = [panel.value(row) for row in rows]
    tops = [(value or 0.0) + (panel.spread(row) or 0.0) for value, row in zip(values, rows, strict=True)]
    most = max(max(tops), 1e-12)
    found = []
    for index, (row, value) in enumerate(zip(rows, values, strict=True)):
        if value is None or not math.isfinite(value):
            continue
        length = max(0.0, value / most) * _PANEL
        y = _y(index)
        found.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>')
        end = length
        if spread := panel.spread(row):
            low, high = (max(0.0, value - spread) / most * _PANEL, (value + spread) / most * _PANEL)
            middle = y + _BAR / 2
            found.append(
                f'<line x1="{left + low:.1f}" x2="{left + high:.1f}" y1="{middle}" y2="{middle}" '
                'stroke="black"/>'
            )
            end = max(length, high)
        found.append(f'<text x="{left + end + 4:.1f}" y="{y + 13}">{escape(panel.shown(value))}</text>')
    return found

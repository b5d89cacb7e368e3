"""Curves of several runs over steps: an SVG that stands by itself, values for the pointer, a table."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from launcher.report.axis import Axis, horizontal, vertical
from launcher.report.figures import NONE, shown, told_apart
from launcher.report.markup import Safe, empty, folded, join, table, tag
from launcher.report.series import Series, thin

WIDTH, HEIGHT = 760, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 14, 12, 40
_POINTS = 1200  # of one chart, all runs together
_MARKS, _ROWS = 60, 20
COLOURS = 8  # as many as style.css has


@dataclass(frozen=True, kw_only=True)
class Chart:
    """What is drawn. `unit` stands behind the values' name; `words` writes one value."""

    name: str
    title: str
    unit: str
    curves: tuple[Series, ...]
    words: Callable[[float | None], str] = shown
    may_be_log: bool = False

    @property
    def drawn(self) -> tuple[Series, ...]:
        """Curves that have a value or a step without one."""
        return tuple(each for each in self.curves if each.points or each.missing)


def figure(chart: Chart) -> Safe:
    """The chart with its caption, its values for the script, and its table. Empty where nothing is known."""
    curves = chart.drawn
    values = [value for each in curves for _, value in each.points]
    if not values:
        return _without_values(chart)
    steps = [step for each in curves for step, _ in each.points] + [
        s for each in curves for s in each.missing
    ]
    x = horizontal(steps, start=_LEFT, end=WIDTH - _RIGHT)
    y = vertical(values, start=HEIGHT - _BOTTOM, end=_TOP, may_be_log=chart.may_be_log)
    buckets = max(40, _POINTS // (4 * len(curves)))
    thinned = [thin(each.points, buckets) for each in curves]
    is_thinned = any(len(kept) < len(each.points) for kept, each in zip(thinned, curves, strict=True))
    return tag(
        "figure",
        tag("figcaption", tag("strong", chart.title), _remark(chart, y, is_thinned)),
        _svg(chart, x, y, thinned),
        tag("output", "", class_="values", aria_live="polite"),
        _legend(curves),
        _embedded(chart, x, y, thinned),
        _as_table(chart),
        class_="chart",
        id=f"chart-{chart.name}",
    )


def _without_values(chart: Chart) -> Safe:
    """One line where every value is missing: that is something to know."""
    missing = sum(len(each.missing) for each in chart.drawn)
    if not missing:
        return Safe("")
    said = f": none of {missing} logged values is a finite number"
    return tag("p", tag("strong", chart.title), said, class_="alarm")


def _remark(chart: Chart, y: Axis, is_thinned: bool) -> str:
    parts = [f" ({chart.unit})"] if chart.unit else []
    parts += [", logarithmic axis"] if y.is_log else []
    parts += [", thinned: lowest and highest of each stretch are kept"] if is_thinned else []
    missing = sum(len(each.missing) for each in chart.drawn)
    parts += [f", ✕ marks {missing} step(s) without a finite value"] if missing else []
    return "".join(parts)


def _svg(chart: Chart, x: Axis, y: Axis, thinned: Sequence[Sequence[tuple[float, float]]]) -> Safe:
    name = chart.name
    lines = [_curve(each, points, x, y) for each, points in zip(chart.drawn, thinned, strict=True)]
    return tag(
        "svg",
        tag("title", f"{chart.title} by step", id=f"{name}-title"),
        tag("desc", _described(chart), id=f"{name}-desc"),
        *_grid(chart, x, y),
        *lines,
        tag("g", class_="pointer"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        tabindex=0,
    )


def _described(chart: Chart) -> str:
    """The curves in words, for who does not see them."""
    said = []
    for each in chart.drawn:
        if each.points:
            values = [value for _, value in each.points]
            ends = f"from {chart.words(values[0])} at step {shown(each.points[0][0])}"
            ends += f" to {chart.words(values[-1])} at step {shown(each.points[-1][0])}"
            ends += f", lowest {chart.words(min(values))}, highest {chart.words(max(values))}"
            said.append(f"{each.label}: {ends}.")
    return " ".join(said)


def _grid(chart: Chart, x: Axis, y: Axis) -> list[Safe]:
    made = []
    ticks = y.ticks(5)
    for value, words in zip(ticks, told_apart(ticks, chart.words), strict=True):
        place = f"{y.place(value):.1f}"
        made.append(empty("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=place, y2=place, class_="grid"))
        made.append(tag("text", words, x=_LEFT - 6, y=place, class_="y"))
    for value in x.ticks(8):
        if value == int(value):
            made.append(
                tag("text", shown(value), x=f"{x.place(value):.1f}", y=HEIGHT - _BOTTOM + 16, class_="x")
            )
    made.append(empty("line", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y.start, y2=y.start, class_="axis"))
    made.append(tag("text", "step", x=(_LEFT + WIDTH - _RIGHT) / 2, y=HEIGHT - 6, class_="x"))
    return made


def _curve(each: Series, points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> Safe:
    path = "".join(
        f"{'ML'[place > 0]}{x.place(a):.1f} {y.place(b):.1f}" for place, (a, b) in enumerate(points)
    )
    marks: list[Safe] = []
    if each.kind == "eval" or len(points) == 1:
        marks = [
            empty("circle", cx=f"{x.place(a):.1f}", cy=f"{y.place(b):.1f}", r=3)
            for a, b in points[:: 1 + len(points) // _MARKS]
        ]
    crosses = [
        tag("text", "✕", x=f"{x.place(step):.1f}", y=y.start - 3, class_="cross")
        for step in each.missing[:: 1 + len(each.missing) // _MARKS]
    ]
    lines = [empty("path", d=path)] if len(points) > 1 else []
    return tag("g", *lines, *marks, *crosses, class_=f"r{each.run % COLOURS} {each.kind}")


def _legend(curves: Sequence[Series]) -> Safe:
    keys = [
        tag("li", _key(each), join([each.label, " (evaluation)" if each.kind == "eval" else ""]))
        for each in curves
    ]
    return tag("ul", *keys, class_="legend")


def _key(each: Series) -> Safe:
    line = empty("line", x1=0, x2=26, y1=6, y2=6)
    inner = tag("g", line, class_=f"r{each.run % COLOURS} {each.kind}")
    return tag("svg", inner, viewBox="0 0 26 12", width=26, height=12, aria_hidden="true")


def _embedded(chart: Chart, x: Axis, y: Axis, thinned: Sequence[Sequence[tuple[float, float]]]) -> Safe:
    """The drawn values for the script. Nothing in it can end the element: `<` is written by its number."""
    data = {
        "x": [x.low, x.high, x.start, x.end],
        "y": [y.low, y.high, y.start, y.end, int(y.is_log)],
        "series": [
            {
                "name": each.label + (" (evaluation)" if each.kind == "eval" else ""),
                "colour": each.run % COLOURS,
                "points": [[_short(a), _short(b)] for a, b in points],
            }
            for each, points in zip(chart.drawn, thinned, strict=True)
        ],
    }
    text = (
        json.dumps(data, ensure_ascii=True, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("&", "\\u0026")
    )
    return Safe(f'<script type="application/json">{text}</script>')


def _short(value: float) -> float | int:
    found = float(f"{value:.6g}")
    return int(found) if found == int(found) and abs(found) < 1e15 else found


def _as_table(chart: Chart) -> Safe:
    """Some twenty steps of every curve, evenly chosen."""
    steps = sorted({step for each in chart.drawn for step, _ in each.points})
    every = -(-len(steps) // _ROWS)
    chosen = sorted({*steps[::every], *steps[-1:]})
    values = [dict(each.points) for each in chart.drawn]
    heads = ["step", *(each.label + (" (evaluation)" if each.kind == "eval" else "") for each in chart.drawn)]
    rows = [
        [shown(step), *(chart.words(known[step]) if step in known else NONE for known in values)]
        for step in chosen
    ]
    caption = f"{chart.title} by step" + (f", every {every}. logged step" if every > 1 else "")
    return folded("Values as a table", table(caption, heads, rows))

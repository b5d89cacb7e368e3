"""The same stacked bars as a picture: SVG written as text, PNG where matplotlib is installed."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from launcher.errors import Problem, RecipeError
from launcher.memory.breakdown import Breakdown
from launcher.plan.bars import term_names
from launcher.units import GIB

# Okabe and Ito's colours, told apart by people who do not see red and green, then lighter ones.
COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999"),
    *("#7FB8D8", "#F2CF80", "#80CFB9", "#E5BCD3", "#ABDAF4", "#EAAF80", "#F7F1A1", "#CCCCCC"),
)
_WIDTH, _LEFT, _BAR, _GAP, _TOP = 860, 90, 26, 12, 46
_COLUMNS, _LINE = 3, 18


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour a term, in order."""
    return {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}


def svg_text(breakdown: Breakdown, usable_bytes: int, *, title: str) -> str:
    """One bar a phase, the card's end as a line, a legend below."""
    names = term_names(breakdown.phases)
    paint = colours(names)
    most = max(usable_bytes, breakdown.peak_bytes) * 1.03
    scale = (_WIDTH - _LEFT - 90) / most
    bottom = _TOP + len(breakdown.phases) * (_BAR + _GAP)
    height = bottom + 16 + _LINE * -(-len(names) // _COLUMNS)
    parts = [_text(12, 22, title, weight="bold")]
    for row, phase in enumerate(breakdown.phases):
        y, total = _TOP + row * (_BAR + _GAP), 0
        parts.append(_text(_LEFT - 8, y + 18, phase.name, anchor="end"))
        for term in phase.terms:
            label = f"{term.name}: {term.num_bytes / GIB:.2f} GiB = {term.formula}"
            parts.append(_box(_LEFT + total * scale, y, term.num_bytes * scale, paint.get(term.name), label))
            total += term.num_bytes
        parts.append(_text(_LEFT + total * scale + 6, y + 18, f"{phase.num_bytes / GIB:.1f} GiB"))
    end = _LEFT + usable_bytes * scale
    parts.append(f'<path d="M{end:.1f} {_TOP - 8}V{bottom}" stroke="#000" stroke-dasharray="4 3"/>')
    parts.append(_text(end, _TOP - 12, f"{usable_bytes / GIB:.1f} GiB usable", anchor="middle"))
    parts += [_key(index, name, paint[name], bottom + 14) for index, name in enumerate(names)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">'
    )
    return "\n".join([head, f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>', *parts, "</svg>\n"])


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'
    )


def _box(x: float, y: float, width: float, colour: str | None, label: str) -> str:
    if width <= 0:
        return ""
    shape = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour or "#999"}">'
    return f"{shape}<title>{escape(label)}</title></rect>"


def _key(index: int, name: str, colour: str, top: int) -> str:
    column, row = index % _COLUMNS, index // _COLUMNS
    x, y = _LEFT + column * (_WIDTH - _LEFT) / _COLUMNS, top + row * _LINE
    square = f'<rect x="{x:.1f}" y="{y}" width="11" height="11" fill="{colour}"/>'
    return square + _text(x + 16, y + 10, name)


def write_png(path: Path, breakdown: Breakdown, usable_bytes: int, *, title: str) -> None:
    """Draw with matplotlib. Raises RecipeError where it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RecipeError(
            Problem(
                where="--png",
                what="a PNG is drawn by matplotlib, which is not installed",
                right="matplotlib, or an SVG, which needs nothing",
                type=f"pip install matplotlib, or --svg {path.with_suffix('.svg')}",
            )
        ) from error
    paint = colours(term_names(breakdown.phases))
    figure = Figure(figsize=(9, 1.2 + 0.45 * len(breakdown.phases)), layout="constrained")
    axes = figure.subplots()
    for row, phase in enumerate(breakdown.phases):
        left = 0.0
        for term in phase.terms:
            axes.barh(row, term.num_bytes / GIB, left=left, color=paint.get(term.name, "#999"), height=0.7)
            left += term.num_bytes / GIB
    axes.set_yticks(range(len(breakdown.phases)), [phase.name for phase in breakdown.phases])
    axes.invert_yaxis()
    axes.axvline(usable_bytes / GIB, color="black", linestyle="--")
    axes.set(xlabel="GiB", title=title)
    handles = [axes.barh(0, 0, color=colour, label=name) for name, colour in paint.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=_COLUMNS, fontsize=8)
    figure.savefig(path, dpi=130)

"""A memory breakdown as stacked bars of text, one a phase, with the card's end marked."""

from collections.abc import Sequence

from launcher.memory.breakdown import Breakdown, Phase
from launcher.units import GIB, format_bytes

_SPARE = "#@%&+=*ox~"
# Below this share of the widest bar a term has no cell of its own; the legend still names it.
_LEAST_SHARE = 0.005


def term_names(phases: Sequence[Phase]) -> list[str]:
    """Every term once, in the order of its first phase."""
    return list(dict.fromkeys(term.name for phase in phases for term in phase.terms if term.num_bytes > 0))


def glyphs(names: Sequence[str]) -> dict[str, str]:
    """One character a term: a letter of its name that no other has, else a sign."""
    found: dict[str, str] = {}
    for name in names:
        letters = [letter for letter in name.upper() if letter.isalpha()]
        free = [sign for sign in [*letters, *_SPARE] if sign not in found.values()]
        found[name] = free[0] if free else "?"
    return found


def bar_lines(breakdown: Breakdown, usable_bytes: int, *, width: int = 56) -> list[str]:
    """The bars, each with its sum, then what the letters mean at the peak."""
    signs = glyphs(term_names(breakdown.phases))
    scale = max(usable_bytes, *(phase.num_bytes for phase in breakdown.phases)) / width
    end = min(width - 1, round(usable_bytes / scale) - 1)
    room = max(len(phase.name) for phase in breakdown.phases)
    lines = [f"{'':{room}} |{_ruler(end, width)}| {format_bytes(usable_bytes)} usable"]
    for phase in breakdown.phases:
        mark = "  <- peak" if phase is breakdown.peak else ""
        cells = _cells(phase, signs, scale)[:width].ljust(width)
        lines.append(f"{phase.name:{room}} |{cells}| {format_bytes(phase.num_bytes)}{mark}")
    return [*lines, *_legend(breakdown, signs)]


def _ruler(end: int, width: int) -> str:
    return ("-" * end + ">").ljust(width)[:width]


def _cells(phase: Phase, signs: dict[str, str], scale: float) -> str:
    """Cells by running sums, so that rounding never makes the whole bar too long."""
    text, total = "", 0.0
    for term in phase.terms:
        total += term.num_bytes
        text += signs.get(term.name, "") * (round(total / scale) - len(text))
    return text


def _legend(breakdown: Breakdown, signs: dict[str, str]) -> list[str]:
    """Each term with its letter, largest first; terms outside the peak's phase at their largest."""
    largest: dict[str, int] = {}
    for phase in breakdown.phases:
        for term in phase.terms:
            largest[term.name] = max(largest.get(term.name, 0), term.num_bytes)
    at_peak = {term.name: term.num_bytes for term in breakdown.peak.terms}
    least = _LEAST_SHARE * breakdown.peak_bytes
    shown = [name for name in signs if largest[name] >= least]
    shown.sort(key=lambda name: (-at_peak.get(name, 0), -largest[name]))
    words = [f"{signs[name]} {name} {_gib(at_peak.get(name, 0), largest[name])}" for name in shown]
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 94:
            lines.append("")
        lines[-1] += f"{'  ' if lines[-1] else ''}{word}"
    return lines


def _gib(at_peak: int, largest: int) -> str:
    """GiB at the peak, or the largest elsewhere in brackets."""
    return f"{at_peak / GIB:.2f}" if at_peak else f"({largest / GIB:.2f})"

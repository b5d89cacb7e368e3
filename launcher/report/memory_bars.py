"""Memory of one rank by phase: what was predicted beside what was measured."""

from collections.abc import Sequence

from launcher.report.figures import at, in_bytes, number, shown
from launcher.report.markup import Safe, empty, join, table, tag
from launcher.report.reading import Run
from launcher.units import GIB

_WIDTH, _LEFT, _RIGHT, _BAR, _ROW = 760, 150, 125, 13, 36
_BOTH, _PARTS = "forward and backward", ("forward", "backward")
Row = tuple[str, float | None, float | None]


def memory_section(runs: Sequence[Run]) -> Safe:
    """One picture and one table a run."""
    return join(_of_run(place, run) for place, run in enumerate(runs))


def _of_run(place: int, run: Run) -> Safe:
    rows = _rows(run)
    if not any(measured is not None for _, _, measured in rows):
        return tag("p", f"{run.label}: no memory is summed up (a run writes summary.json when it ends).")
    note = tag("p", _note(run), class_="remark")
    parts = [tag("figcaption", tag("strong", run.label)), _svg(place, run, rows), note, _table(run, rows)]
    return tag("figure", *parts, class_="bars")


def _rows(run: Run) -> list[Row]:
    """Phase, predicted and measured bytes; the whole run's peak last."""
    predicted, measured = at(run.summary, "memory", "predicted"), at(run.summary, "memory", "measured")
    seen, expected = _numbers(at(measured, "phases")), _numbers(at(predicted, "phases"))
    if _BOTH in seen:  # measured together: the larger of the two is what is predicted of both
        parts = [value for name in _PARTS if (value := expected.pop(name, None)) is not None]
        expected |= {_BOTH: max(parts)} if parts else {}
    rows = [(name, expected.get(name), seen.get(name)) for name in dict.fromkeys([*seen, *expected])]
    peaks = [at(measured, key) for key in ("peak_allocated_bytes", "peak_resident_bytes")]
    return [*rows, ("peak", number(at(predicted, "peak_bytes")), number(next((p for p in peaks if p), None)))]


def _numbers(data: object) -> dict[str, float]:
    """The finite numbers of a mapping, whatever else is in it."""
    values = data.items() if isinstance(data, dict) else ()
    return {str(name): found for name, value in values if (found := number(value)) is not None}


def _note(run: Run) -> str:
    """What the figures are of: a process holds more than tensors."""
    measured, why_not = (
        at(run.summary, "memory", "measured"),
        at(run.summary, "memory", "predicted", "why_not"),
    )
    said = f"Nothing was predicted: {why_not}. " if why_not else ""
    standing = at(run.summary, "memory", "predicted", "standing")
    said += f"Predicted: tensors of one rank, {standing}. " if standing else ""
    if number(at(measured, "peak_resident_bytes")) is None:
        reserved = in_bytes(at(measured, "peak_reserved_bytes"))
        return (
            said
            + f"Measured: what torch allocated on the first rank's card; at most {reserved} were reserved."
        )
    held = in_bytes(at(measured, "resident_at_start_bytes"))
    return (
        said + f"Measured on a CPU: everything the process held, of which {held} before the model was loaded."
    )


def _svg(place: int, run: Run, rows: Sequence[Row]) -> Safe:
    most = max(each for _, *both in rows for each in both if each is not None) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    bars = [part for number_, row in enumerate(rows) for part in _bars(number_ * _ROW + 8, row, scale)]
    return tag(
        "svg",
        tag("title", f"Memory of {run.label} by phase", id=f"b{place}-title"),
        tag("desc", "; ".join(_words(row) for row in rows), id=f"b{place}-desc"),
        *bars,
        viewBox=f"0 0 {_WIDTH} {len(rows) * _ROW + 8}",
        role="img",
        aria_labelledby=f"b{place}-title b{place}-desc",
    )


def _bars(top: int, row: Row, scale: float) -> list[Safe]:
    name, predicted, measured = row
    parts = [tag("text", name, x=_LEFT - 8, y=top + _BAR + 4, class_="y")]
    for offset, value, kind in ((0, predicted, "predicted"), (_BAR + 1, measured, "measured")):
        if value is None:
            continue
        width = f"{value * scale:.1f}"
        parts.append(empty("rect", x=_LEFT, y=top + offset, width=width, height=_BAR, class_=kind))
        words = f"{value / GIB:.2f} GiB {kind}"
        parts.append(
            tag("text", words, x=f"{_LEFT + value * scale + 5:.1f}", y=top + offset + _BAR - 2, class_="b")
        )
    return parts


def _words(row: Row) -> str:
    name, predicted, measured = row
    return f"{name}: predicted {in_bytes(predicted)}, measured {in_bytes(measured)}"


def _table(run: Run, rows: Sequence[Row]) -> Safe:
    body = [
        [name, in_bytes(predicted), in_bytes(measured), _ratio(predicted, measured)]
        for name, predicted, measured in rows
    ]
    return table(f"Memory of {run.label}", ["phase", "predicted", "measured", "predicted / measured"], body)


def _ratio(predicted: float | None, measured: float | None) -> str:
    return shown(round(predicted / measured, 3)) if predicted and measured else shown(None)

"""The table of a comparison: a row a setting, quality as mean and spread over its seeds."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from launcher.report.compare_run import Outcome
from launcher.units import format_bytes

_HEAD = ("trained", "predicted", "measured", "rows/s", "seeds")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting. Bytes are peaks of one rank; `spread` is the sample standard deviation over seeds.

    None where it was not predicted, not measured, or there is one seed only; `why` is what failed. What is
    predicted are tensors; what is measured on a CPU is the whole process, of which `held_at_start_bytes`
    were there before the model was loaded (None on a card, where tensors are measured).
    """

    label: str
    trained_parameters: int | None
    predicted_bytes: int | None
    measured_bytes: int | None
    samples_per_s: float | None
    quality: float | None
    spread: float | None
    num_seeds: int
    why: str = ""
    held_at_start_bytes: int | None = None


def rows(outcomes: Sequence[Outcome], metric: str) -> list[Row]:
    """The outcomes by setting, in the order in which they were run."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.cell.label, []).append(outcome)
    return [_row(label, group, metric) for label, group in groups.items()]


def _row(label: str, group: Sequence[Outcome], metric: str) -> Row:
    done = [each.summary for each in group if each.summary is not None]
    values = [float(each["quality"][metric]) for each in done if metric in each.get("quality", {})]
    failures = [
        f"seed {each.cell.seed}: {each.why}" if each.cell.seed is not None else each.why
        for each in group
        if each.why
    ]
    return Row(
        label=label,
        trained_parameters=done[0].get("trained_parameters") if done else None,
        predicted_bytes=_most([_predicted(each) for each in done]),
        measured_bytes=_most([_measured(each) for each in done]),
        samples_per_s=statistics.fmean([each["samples_per_s"] for each in done]) if done else None,
        quality=statistics.fmean(values) if values else None,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        num_seeds=len(values),
        why="; ".join(failures),
        held_at_start_bytes=_most([_held(each) for each in done]),
    )


def _most(found: Sequence[int | None]) -> int | None:
    return max((each for each in found if each is not None), default=None)


def _predicted(summary: dict[str, Any]) -> int | None:
    found: int | None = summary.get("memory", {}).get("predicted", {}).get("peak_bytes")
    return found


def _measured(summary: dict[str, Any]) -> int | None:
    measured = summary.get("memory", {}).get("measured", {})
    found: int | None = measured.get("peak_allocated_bytes") or measured.get("peak_resident_bytes")
    return found


def _held(summary: dict[str, Any]) -> int | None:
    found: int | None = summary.get("memory", {}).get("measured", {}).get("resident_at_start_bytes")
    return found


def text(found: Sequence[Row], metric: str) -> str:
    """The table; below it what the measured bytes are of, and a line of reasons for what failed."""
    table = [("", *_HEAD, metric)]
    for row in found:
        memory = (_bytes(row.predicted_bytes), _bytes(row.measured_bytes))
        speed = "-" if row.samples_per_s is None else f"{row.samples_per_s:.1f}"
        trained = "-" if row.trained_parameters is None else f"{row.trained_parameters:,}"
        table.append((row.label, trained, *memory, speed, str(row.num_seeds), quality_of(row)))
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    lines = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]  # noqa: B905
        ).rstrip()
        for line in table
    ]
    return "\n".join([*lines, *_note(found), *(f"{row.label}: {row.why}" for row in found if row.why)])


def _note(found: Sequence[Row]) -> list[str]:
    held = _most([row.held_at_start_bytes for row in found])
    if held is None:
        return []
    told = f"measured: everything that the process held, of which {format_bytes(held)} before the model"
    return [f"{told} was loaded; predicted: tensors alone"]


def quality_of(row: Row) -> str:
    """`0.7312 ± 0.0041`, without the spread where there is one seed."""
    if row.quality is None:
        return "-"
    return f"{row.quality:.4f}" + (f" ± {row.spread:.4f}" if row.spread is not None else "")


def _bytes(amount: int | None) -> str:
    return "-" if amount is None else format_bytes(amount)


def as_json(found: Sequence[Row], metric: str) -> dict[str, Any]:
    """The table for programs: bytes, rows a second, and the metric's name."""
    return {"metric": metric, "rows": [asdict(row) for row in found]}

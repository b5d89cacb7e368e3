"""How well the estimate meets published memory figures.

    python benchmarks/memory_accuracy.py CSV [--json] [--rows] [--write-standings]

Per source, method and backend: rows, coverage, signed errors of allocated memory (median, 90th percentile
of their size, worst), the share of nvidia-smi or reserved figures inside the stated range and its median
width (of the allocated figure), false fits among runs that ran out of memory and false alarms among those
that did not. `overall` counts rows of grade A (`completeness`), or all where the file has none of it.
`--rows` lists every row. Nothing is fitted here.
"""

import argparse
import csv
import io
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_rows import Reading, Row, Unpredictable, read

from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.fits import fits
from launcher.memory.standing import Key, key_of, write

GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Result:
    """One row with its prediction; `reason` says why there is none."""

    row: Row
    reading: Reading | None = None
    breakdown: Breakdown | None = None
    says_fits: bool | None = None
    reason: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured allocated memory, less one."""
        if self.reading is None or self.breakdown is None or not self.reading.figures.allocated:
            return None
        return self.breakdown.peak_bytes / GIB / self.reading.figures.allocated - 1

    @property
    def is_inside(self) -> bool | None:
        """Whether the measured process (else reserved) memory lies in the stated range."""
        if self.reading is None or self.breakdown is None:
            return None
        figures = self.reading.figures
        for value, found in (
            (figures.process, self.breakdown.process_bytes),
            (figures.reserved, self.breakdown.reserved_bytes),
        ):
            if value is not None:
                return found[0] <= value * GIB <= found[1]
        return None

    @property
    def width(self) -> float | None:
        """The stated range's width as a share of the allocated figure."""
        if self.is_inside is None or self.breakdown is None or self.reading is None:
            return None
        low, high = self.breakdown.process_bytes
        allocated = self.reading.figures.allocated
        return (high - low) / (allocated * GIB if allocated else self.breakdown.peak_bytes)

    @property
    def outcome(self) -> str:
        """`oom`, `fits` or nothing, where the card's memory is known."""
        if self.reading is None or self.says_fits is None:
            return ""
        return self.reading.figures.outcome


def read_rows(path: Path) -> list[Row]:
    """The file's rows by their column's name, whatever case it is in; commas, semicolons or tabs between."""
    text = path.read_text(encoding="utf-8-sig", errors="replace").replace("\0", "")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    return [
        {(key or "").strip().lower(): value if isinstance(value, str) else "" for key, value in row.items()}
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        if any(isinstance(value, str) and value.strip() for value in row.values())
    ]


def judge(row: Row) -> Result:
    """Read a row and predict it."""
    try:
        reading = read(row)
        usable = reading.figures.usable
        usable_bytes = None if usable is None else int(usable * GIB)
        breakdown = estimate(reading.setting, usable_bytes=usable_bytes)
    except Unpredictable as error:
        return Result(row=row, reason=str(error))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a cell that nobody foresaw
        return Result(row=row, reason=f"the row cannot be read: {type(error).__name__}: {error}")
    says = None if usable_bytes is None else fits(breakdown, usable_bytes).fits
    return Result(row=row, reading=reading, breakdown=breakdown, says_fits=says)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """The figures of a group. Shares and errors as fractions; None where there is nothing to count."""
    errors = [result.error for result in results if result.error is not None]
    sizes = sorted(abs(error) for error in errors)
    inside = [result.is_inside for result in results if result.is_inside is not None]
    widths = [result.width for result in results if result.width is not None]
    oom = [result for result in results if result.outcome == "oom"]
    fit = [result for result in results if result.outcome == "fits"]
    return {
        "rows": len(results),
        "coverage": _share([result.breakdown is not None for result in results]),
        "median": statistics.median(errors) if errors else None,
        "median_abs": statistics.median(sizes) if sizes else None,
        "p90_abs": percentile(sizes, 0.9),
        "worst_under": min(0.0, *errors) if errors else None,
        "worst_over": max(0.0, *errors) if errors else None,
        "measured_rows": len(errors),
        "range_share": _share([bool(value) for value in inside]),
        "range_rows": len(inside),
        "range_width": statistics.median(widths) if widths else None,
        "oom_rows": len(oom),
        "false_fits": sum(bool(result.says_fits) for result in oom),
        "fit_rows": len(fit),
        "false_alarms": sum(not result.says_fits for result in fit),
    }


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Linear between the neighbours, as numpy's default."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def grade(row: Row) -> str:
    """The row's completeness; A where the file has no such column."""
    return (row.get("completeness") or "A").strip().upper() or "A"


def report(rows: Iterable[Row]) -> tuple[dict[str, Any], list[Result]]:
    """Everything as numbers, and every row's result."""
    results = [judge(row) for row in rows]
    best = [result for result in results if grade(result.row) == "A"]
    groups: dict[tuple[str, str, str, str], list[Result]] = defaultdict(list)
    for result in results:
        groups[_group(result.row)].append(result)
    keys = ("grade", "source", "method", "backend")
    found = {
        "overall": summary(best or results),
        "all_grades": summary(results),
        "groups": [dict(zip(keys, key, strict=True)) | summary(groups[key]) for key in sorted(groups)],
        "unpredicted": [
            {"row": _name(result.row, index), "grade": grade(result.row), "reason": result.reason}
            for index, result in enumerate(results, 2)
            if result.breakdown is None
        ],
    }
    return found, results


def _name(row: Row, line: int) -> str:
    """The row's own name, else its line in the file."""
    return (row.get("row_id") or "").strip() or f"line {line}"


def _group(row: Row) -> tuple[str, str, str, str]:
    words = [(row.get(key) or "").strip() for key in ("source", "method", "backend")]
    return (grade(row), words[0], words[1], words[2])


def standings(results: Iterable[Result]) -> dict[Key, tuple[int, float]]:
    """Measurements and their 90th percentile error, by method, backend, checkpointing and kind of model."""
    errors: dict[Key, list[float]] = defaultdict(list)
    for result in results:
        if grade(result.row) == "A" and result.reading is not None and result.error is not None:
            errors[key_of(result.reading.setting)].append(abs(result.error))
    return {key: (len(found), percentile(sorted(found), 0.9) or 0.0) for key, found in errors.items()}


# --- text --------------------------------------------------------------------------------------------

_HEAD = (
    "rows", "cover", "median", "p90", "under", "over", "in range", "width", "oom: false fits",
    "fit: false alarms",
)  # fmt: skip


def _cells(found: dict[str, Any]) -> list[str]:
    def percent(value: float | None, sign: str = "") -> str:
        return "-" if value is None else f"{100 * value:{sign}.1f}%"

    return [
        str(found["rows"]),
        percent(found["coverage"]),
        percent(found["median"], "+"),
        percent(found["p90_abs"]),
        percent(found["worst_under"], "+"),
        percent(found["worst_over"], "+"),
        percent(found["range_share"]) + (f" of {found['range_rows']}" if found["range_rows"] else ""),
        percent(found["range_width"]),
        f"{found['false_fits']} of {found['oom_rows']}",
        f"{found['false_alarms']} of {found['fit_rows']}",
    ]


def text(found: dict[str, Any]) -> str:
    """The tables as a person reads them."""
    lines = [("", *_HEAD), ("overall (grade A)", *_cells(found["overall"]))]
    lines.append(("all grades", *_cells(found["all_grades"])))
    for group in found["groups"]:
        name = f"{group['grade']} {group['source'][:30]} | {group['method'][:22]} | {group['backend'][:22]}"
        lines.append((name, *_cells(group)))
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in found["unpredicted"]:
        reasons[each["grade"], each["reason"]].append(each["row"])
    table += ["", "not predicted:"] + [
        f"  {key[0]} {key[1]}: rows {', '.join(rows)}" for key, rows in sorted(reasons.items())
    ]
    return "\n".join(table)


def row_line(result: Result) -> str:
    """One row: measured, predicted, where its peak is, and what was assumed."""
    row = result.row
    name = " ".join((row.get(key) or "")[:24] for key in ("row_id", "model_id", "method", "backend"))
    if result.reading is None or result.breakdown is None:
        return f"{name}: {result.reason}"
    error = "" if result.error is None else f" {100 * result.error:+.1f}%"
    low, high = (value / GIB for value in result.breakdown.process_bytes)
    figures = result.reading.figures
    verdict = "" if result.says_fits is None else f"; fits {result.says_fits}, was {figures.outcome or '?'}"
    return (
        f"{name}: {result.breakdown.peak_bytes / GIB:.2f} GiB in {result.breakdown.peak.name}, measured "
        f"{figures.allocated}{error}; process {low:.1f}-{high:.1f}, "
        f"measured {figures.process or figures.reserved}"
        f"{verdict}; {'; '.join(result.reading.assumed)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Read, predict, print; results on stdout."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("csv", type=Path)
    parser.add_argument("--json", action="store_true", help="the same as numbers")
    parser.add_argument("--rows", action="store_true", help="every row")
    parser.add_argument("--save", action="store_true", help="keep the figures under benchmarks/results")
    parser.add_argument("--write-standings", action="store_true", help="renew launcher/memory/standings.json")
    arguments = parser.parse_args(argv)
    try:
        rows = read_rows(arguments.csv)
    except OSError as error:
        print(f"{arguments.csv}: cannot be read ({error.strerror})", file=sys.stderr)
        return 2
    found, results = report(rows)
    if arguments.write_standings:
        write(standings(results))
    if arguments.save:
        from paired import save

        save("memory_accuracy", {key: value for key, value in found.items() if key != "unpredicted"})
    if arguments.rows:
        print("\n".join(row_line(result) for result in results))
    print(json.dumps(found, indent=1) if arguments.json else text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

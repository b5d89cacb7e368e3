"""The sweep's table: a line a combination of cards, with memory, time, cost and what had to change."""

from collections.abc import Sequence

from launcher.errors import LauncherError
from launcher.plan.forecast import Forecast
from launcher.plan.sweep import Point
from launcher.plan.time_model import step_words
from launcher.units import GIB, format_seconds

_HEAD = ("cards", "backend", "fits", "GiB of", "rows", "a step", "rows/s", "the run", "cost", "remark")


def table(name: str, rows: Sequence[tuple[Point, Forecast | None, LauncherError | None]]) -> list[str]:
    """The lines, the recipe's name first."""
    cells = [_HEAD, *(_line(point, answer, error) for point, answer, error in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEAD) - 1)]
    return [name, *("  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in cells)]


def _line(point: Point, answer: Forecast | None, error: LauncherError | None) -> tuple[str, ...]:
    if answer is None:
        cards = f"{point.gpus or ''} {point.gpu or ''}".strip() or "-"
        what = error.problems[0].what if error else ""
        return (cards, point.backend or "-", "?", *["-"] * 6, what.splitlines()[0] if what else "")
    shown = answer.shown
    setting = shown.candidate.setting
    gpu = answer.gpu.name if answer.gpu else "cpu"
    return (
        f"{answer.num_ranks} x {gpu}",
        shown.candidate.backend,
        "yes" if answer.fits else "changed" if answer.chosen else "no",
        f"{shown.breakdown.peak_bytes / GIB:.1f} of {answer.usable_bytes / GIB:.1f}",
        f"{setting.micro_batch}x{setting.accumulation_steps}",
        step_words(shown.time.seconds) if shown.time else "-",
        f"{shown.time.rows_per_s:.3g}" if shown.time else "-",
        format_seconds(answer.duration.run_s) if answer.duration and answer.duration.run_s else "-",
        _cost(answer),
        shown.candidate.typed,
    )


def _cost(answer: Forecast) -> str:
    took = answer.duration
    if took is None or took.cost is None:
        return "-"
    low, high = took.cost
    shown = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f}-{high:.2f}"
    return f"{shown} {took.currency}"

"""The cells of a comparison planned instead of run: what trains and what it takes, on a card or here."""

from collections.abc import Iterator, Sequence

from launcher.errors import LauncherError
from launcher.memory.sizes import sizes_of
from launcher.plan.forecast import Question, forecast
from launcher.report.compare_cells import Cell
from launcher.report.compare_run import Comparison, load_cell
from launcher.report.compare_table import Row


def planned_rows(comparison: Comparison, cells: Sequence[Cell]) -> Iterator[Row]:
    """One row a setting: seeds change nothing of a plan."""
    seen: set[str] = set()
    for cell in cells:
        if cell.label not in seen:
            seen.add(cell.label)
            yield _row(comparison, cell)


def _row(comparison: Comparison, cell: Cell) -> Row:
    try:
        answer = forecast(Question(loaded=load_cell(comparison, cell)))
    except LauncherError as error:
        return _refused(cell.label, "; ".join(problem.what for problem in error.problems))
    own = answer.asked
    lacks = "" if own.fits else f"does not fit: {own.over_bytes:,} bytes over"
    return Row(
        label=cell.label,
        trained_parameters=sizes_of(own.candidate.setting).trained,
        predicted_bytes=own.breakdown.peak_bytes,
        measured_bytes=None,
        samples_per_s=own.time.rows_per_s if own.time else None,
        quality=None,
        spread=None,
        num_seeds=0,
        why=lacks,
    )


def _refused(label: str, why: str) -> Row:
    return Row(
        label=label,
        trained_parameters=None,
        predicted_bytes=None,
        measured_bytes=None,
        samples_per_s=None,
        quality=None,
        spread=None,
        num_seeds=0,
        why=why,
    )

"""What evaluation measured: the last figures of each run beside the others', and each evaluation."""

from collections.abc import Sequence
from typing import Any

from launcher.report.figures import at, number, shown
from launcher.report.markup import Safe, folded, join, table, tag
from launcher.report.reading import Run

_ROWS = 60


def quality_section(runs: Sequence[Run]) -> Safe:
    """A table of the last evaluations, and one of every evaluation of each run."""
    names = _names(runs)
    if not names:
        return tag("p", "No evaluation is logged.")
    heads = ["run", "step", *names, "best", "at step"]
    rows = [
        [run.label, _step(run), *(shown(_last(run, name)) for name in names), *_best(run)] for run in runs
    ]
    return join([table("Last evaluation of each run", heads, rows), *(_all(run, names) for run in runs)])


def _names(runs: Sequence[Run]) -> list[str]:
    keys = {key for run in runs for line in run.evaluations for key in line if key.startswith("eval_")}
    summed = {
        key for run in runs if isinstance(at(run.summary, "quality"), dict) for key in run.summary["quality"]
    }
    found = {key.removeprefix("eval_") for key in keys - {"eval_seconds"}} | summed
    return sorted(found, key=lambda name: (name == "loss", name))


def _last(run: Run, name: str) -> float | None:
    """Summed up at the end (of the best weights, where those are exported), else the last logged."""
    summed = number(at(run.summary, "quality", name))
    if summed is not None:
        return summed
    return number(run.evaluations[-1].get(f"eval_{name}")) if run.evaluations else None


def _step(run: Run) -> str:
    return shown(number(run.evaluations[-1]["step"])) if run.evaluations else shown(None)


def _best(run: Run) -> list[str]:
    metric, step = number(at(run.summary, "best", "metric")), number(at(run.summary, "best", "step"))
    return [shown(metric), shown(step)]


def _all(run: Run, names: Sequence[str]) -> Safe:
    lines: Sequence[dict[str, Any]] = run.evaluations
    if len(lines) < 2:
        return Safe("")
    every = -(-len(lines) // _ROWS)
    chosen = [line for place, line in enumerate(lines) if place % every == 0 or place == len(lines) - 1]
    rows = [
        [shown(number(x["step"])), *(shown(number(x.get(f"eval_{name}"))) for name in names)] for x in chosen
    ]
    title = f"Evaluations of {run.label}" + (f", every {every}. one" if every > 1 else "")
    return folded(title, table(title, ["step", *names], rows))

"""The first table: each run in one row."""

from collections.abc import Sequence

from launcher.report.figures import NONE, at, in_bytes, in_seconds, number, shown
from launcher.report.markup import Safe, table
from launcher.report.reading import Run
from launcher.report.standing import standing

_HEADS = (
    "run",
    "standing",
    "recipe",
    "backend",
    "method",
    "machine",
    "batch",
    "precision",
    "time",
    "tokens/s",
)


def overview(runs: Sequence[Run]) -> Safe:
    """What was run, on what, how far it is, how fast it was."""
    return table("Runs", [*_HEADS, "MFU", "peak memory", "cost"], [_row(run) for run in runs])


def _row(run: Run) -> list[str]:
    plan = run.summary.get("plan") if isinstance(run.summary.get("plan"), dict) else {}
    step = at(run.plan, "step")
    return [
        run.label,
        standing(run),
        _first(at(plan, "recipe_name"), at(run.plan, "recipe_name")),
        _first(at(run.plan, "backend"), at(plan, "backend"), at(run.recipe, "backend", "name")),
        _first(at(run.recipe, "adapter", "method"), at(plan, "method")),
        _machine(run),
        _first(at(step, "global_batch_size")),
        _first(at(run.plan, "precision"), at(plan, "precision")),
        in_seconds(_last(run, "elapsed_s") or number(run.summary.get("seconds"))),
        shown(number(at(run.summary, "tokens_per_s")) or _mean(run, "tokens_per_s")),
        _percent(_mean(run, "mfu")),
        in_bytes(_peak(run)),
        _cost(run),
    ]


def _first(*values: object) -> str:
    return next((str(value) for value in values if value not in (None, "")), NONE)


def _machine(run: Run) -> str:
    ranks, machine = at(run.plan, "step", "num_ranks"), at(run.environment, "machine")
    name = at(machine, "gpu_name") or at(run.plan, "device")
    return NONE if not name else f"{ranks or 1} x {name}"


def _last(run: Run, key: str) -> float | None:
    return number(run.steps[-1].get(key)) if run.steps else None


def _mean(run: Run, key: str) -> float | None:
    """Over the logged steps after the first, which holds the start-up."""
    found = [value for line in run.steps[1:] if (value := number(line.get(key))) is not None]
    return sum(found) / len(found) if found else None


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def _peak(run: Run) -> float | None:
    measured = at(run.summary, "memory", "measured")
    summed = [number(at(measured, key)) for key in ("peak_allocated_bytes", "peak_resident_bytes")]
    return next((each for each in summed if each), _last(run, "memory_bytes"))


def _cost(run: Run) -> str:
    low, high = _last(run, "cost_low"), _last(run, "cost_high")
    if low is None or high is None:
        return NONE
    span = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    return f"{span} {run.steps[-1].get('currency', '')}"

"""How far a run is, in words, from what it left behind."""

from launcher.report.figures import in_seconds, number
from launcher.report.reading import Run

_STILL_WRITING_S = 120.0


def standing(run: Run) -> str:
    """Finished, ended with a reason, still writing, or silent."""
    if is_finished(run):
        return f"finished: {run.last_step} steps in {in_seconds(run.summary.get('seconds'))}"
    ended = _last_end(run)
    if ended is not None:
        return f"ended at {_place(run)}: {ended}"
    if run.silent_s is None:
        return "nothing is logged yet"
    said = f"{in_seconds(run.silent_s)} ago" if run.silent_s >= 1 else "just now"
    if run.silent_s < _STILL_WRITING_S:
        return f"running, or ended just now: {_place(run)}, last line {said}"
    return f"not finished: {_place(run)}, last line {said}"


def is_finished(run: Run) -> bool:
    """Whether it summed itself up, and was not continued since."""
    summed = number(run.summary.get("steps"))
    logged = max((line["step"] for line in run.steps[-1:]), default=0)
    return summed is not None and summed >= logged and _last_end(run) is None


def _last_end(run: Run) -> str | None:
    """The words of a failure or an interruption, where nothing has happened since."""
    last = run.history[-1] if run.history else {}
    return str(last.get("why") or "no reason given") if last.get("event") in ("failed", "stopped") else None


def _place(run: Run) -> str:
    total = run.total_steps
    return f"step {run.last_step} of {total}" if total else f"step {run.last_step}"

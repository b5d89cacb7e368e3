"""What happened to a run besides steps: starts, resumes, failures, skipped steps, the best evaluation."""

import datetime
from collections.abc import Iterator, Sequence

from launcher.report.figures import number, shown
from launcher.report.markup import Safe, join, table, tag
from launcher.report.reading import Run

_MOST = 200
Event = tuple[float, str, str]


def events_section(runs: Sequence[Run]) -> Safe:
    """One table of all runs, by step."""
    parts = [_of_run(run) for run in runs]
    return join(parts)


def _of_run(run: Run) -> Safe:
    found = sorted(events(run), key=lambda event: event[0])
    rows = [[shown(step), what, when] for step, what, when in found[:_MOST]]
    more = len(found) - _MOST
    remarks = [tag("p", remark, class_="remark") for remark in run.remarks]
    if more > 0:
        remarks.append(tag("p", f"{more} more events are left out", class_="remark"))
    shown_table = table(f"Events of {run.label}", ["step", "what", "when"], rows) if rows else _nothing(run)
    return join([shown_table, *remarks])


def _nothing(run: Run) -> Safe:
    return tag("p", f"{run.label}: nothing happened besides steps.")


def events(run: Run) -> Iterator[Event]:
    """(step, what, when) in no order."""
    yield from _history(run)
    yield from _skips(run)
    best = (
        number((run.summary.get("best") or {}).get("step"))
        if isinstance(run.summary.get("best"), dict)
        else None
    )
    if best is not None:
        yield best, "the best evaluation", ""
    for name in run.checkpoints:
        digits = name.rpartition("-")[2]
        if digits.isdecimal():
            yield float(digits), f"{name} is there", ""


def _history(run: Run) -> Iterator[Event]:
    for line in run.history:
        why = f": {line['why']}" if line.get("why") else ""
        yield float(line["step"]), f"{line.get('event', 'something')}{why}", _when(line.get("time"))


def _when(seconds: object) -> str:
    found = number(seconds)
    if found is None or not 0 <= found < 2e11:
        return ""
    return datetime.datetime.fromtimestamp(found).astimezone().isoformat(" ", "seconds")


def _skips(run: Run) -> Iterator[Event]:
    """Steps that left the weights alone are counted in each line: a rise says that some lie before it."""
    before = 0
    for line in run.steps:
        count = int(number(line.get("skipped_steps")) or 0)
        if count > before:
            yield (
                float(line["step"]),
                f"{count - before} step(s) skipped since the line before: not finite",
                "",
            )
        elif number(line.get("loss")) is None:
            yield float(line["step"]), "the loss is not finite", ""
        before = count

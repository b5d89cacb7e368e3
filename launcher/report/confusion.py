"""Which class was taken for which: a matrix for few classes, the most frequent mix-ups for many."""

from collections.abc import Iterator, Sequence

from launcher.report.figures import number, shown
from launcher.report.markup import Safe, folded, join, table, tag
from launcher.report.reading import Line, Run

_MATRIX, _PAIRS = 20, 30
Counts = dict[tuple[int, int], int]


def confusion_section(runs: Sequence[Run]) -> Safe:
    """For each run its last evaluation, and the best one where that was another."""
    return join(part for run in runs for part in _of_run(run))


def _of_run(run: Run) -> Iterator[Safe]:
    usable = [line for line in run.confusions if _counts(line)]
    if not usable:
        return
    best = (
        number((run.summary.get("best") or {}).get("step"))
        if isinstance(run.summary.get("best"), dict)
        else None
    )
    last = usable[-1]
    yield _shown(run, last, "")
    for line in usable[:-1]:
        if line["step"] == best:
            title = f"{run.label}: the best evaluation, step {shown(number(best))}"
            yield folded(title, _shown(run, line, ", the best"))


def _counts(line: Line) -> Counts:
    """Pairs of class numbers with their rows; whatever is no such triple is left out."""
    found: Counts = {}
    names = line.get("labels")
    triples = line.get("counts")
    if not isinstance(names, list) or not isinstance(triples, list):
        return found
    for triple in triples:
        if isinstance(triple, list) and len(triple) == 3 and all(type(each) is int for each in triple):
            true, predicted, rows = triple
            if 0 <= true < len(names) and 0 <= predicted < len(names) and rows > 0:
                found[true, predicted] = found.get((true, predicted), 0) + rows
    return found


def _shown(run: Run, line: Line, which: str) -> Safe:
    names, counts = [str(name) for name in line["labels"]], _counts(line)
    title = f"{run.label}, step {shown(number(line['step']))}{which}: true class by row, predicted by column"
    return _matrix(title, names, counts) if len(names) <= _MATRIX else _pairs(run, names, counts)


def _matrix(title: str, names: Sequence[str], counts: Counts) -> Safe:
    places = range(len(names))
    rows = []
    for true in places:
        total = sum(counts.get((true, predicted), 0) for predicted in places)
        cells = [_cell(counts.get((true, predicted), 0), total, true == predicted) for predicted in places]
        rows.append([names[true], *cells, shown(float(total)), _share(counts.get((true, true), 0), total)])
    taken = [sum(counts.get((true, predicted), 0) for true in places) for predicted in places]
    right = [_share(counts.get((place, place), 0), taken[place]) for place in places]
    rows.append(["found rightly (precision)", *right, "", ""])
    return tag("div", table(title, ["", *names, "rows", "found (recall)"], rows), class_="confusion")


def _cell(rows: int, total: int, is_right: bool) -> Safe:
    """Shaded by the share of the true class, and told apart by an outline too, not by colour alone."""
    share = rows / total if total else 0.0
    kind = "right" if is_right else "wrong"
    return tag("span", f"{rows:,}", class_=f"cell {kind}", style=f"--share:{share:.3f}")


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if total else shown(None)


def _pairs(run: Run, names: Sequence[str], counts: Counts) -> Safe:
    wrong = sorted(
        ((n, a, b) for (a, b), n in counts.items() if a != b), key=lambda found: (-found[0], found[1:])
    )
    totals = [sum(n for (a, _), n in counts.items() if a == true) for true in range(len(names))]
    recall = {a: counts.get((a, a), 0) / totals[a] for a in range(len(names)) if totals[a]}
    worst = sorted(recall, key=lambda place: (recall[place], place))[:_PAIRS]
    return join(
        [
            table(
                f"{run.label}: the most frequent mix-ups of {len(names)} classes",
                ["true", "predicted", "rows", "of its class"],
                [[names[a], names[b], f"{n:,}", _share(n, totals[a])] for n, a, b in wrong[:_PAIRS]],
            ),
            table(
                f"{run.label}: the classes found least",
                ["class", "found (recall)", "rows"],
                [[names[a], f"{recall[a]:.1%}", f"{totals[a]:,}"] for a in worst],
            ),
        ]
    )

"""Runs the cells of a comparison one after another, each as `launcher run` in a process of its own.

A cell that fails does not end the comparison; one that is finished is not run again; one that was cut off
goes on from its newest checkpoint.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launcher.errors import LauncherError
from launcher.process.orphan import ask_for_signal_on_parent_death
from launcher.recipe.load import LoadedRecipe, load_recipe
from launcher.report.compare_cells import Cell, identity

SUMMARY, IDENTITY = "summary.json", "cell.json"
_START = "import sys; from launcher.cli.main import main; sys.exit(main(sys.argv[1:]))"
_INTERRUPTED = (130, 143)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a cell. `why` is empty where it is finished; `summary` is the run's own."""

    cell: Cell
    why: str = ""
    summary: dict[str, Any] | None = None
    was_there: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The recipe, what is typed for all cells, and where the runs go."""

    recipe: str
    overrides: tuple[str, ...]
    words: tuple[str, ...]
    folder: Path


def load_cell(comparison: Comparison, cell: Cell) -> LoadedRecipe:
    """The cell's recipe. Raises RecipeError where the combination is refused."""
    return load_recipe(comparison.recipe, (*comparison.overrides, *cell.overrides))


def run_cells(comparison: Comparison, cells: Sequence[Cell]) -> Iterator[Outcome]:
    """One outcome a cell, in order. Raises KeyboardInterrupt where a person stops a cell."""
    for number, cell in enumerate(cells, start=1):
        seed = "" if cell.seed is None else f" seed {cell.seed}"
        print(f"[{number}/{len(cells)}] {cell.label}{seed}", file=sys.stderr, flush=True)
        outcome = _run_cell(comparison, cell)
        _tell(outcome)
        yield outcome


def _run_cell(comparison: Comparison, cell: Cell) -> Outcome:
    try:
        mark = identity(load_cell(comparison, cell))
    except LauncherError as error:
        return Outcome(cell=cell, why="; ".join(problem.what for problem in error.problems))
    place = comparison.folder / cell.folder
    is_same = _mark_of(place) == mark
    if is_same and (found := _summary(place)) is not None:
        return Outcome(cell=cell, summary=found, was_there=True)
    started = time.perf_counter()
    code, log = _start(comparison, cell, again=is_same and place.is_dir(), mark=mark)
    seconds = time.perf_counter() - started
    if code in _INTERRUPTED:
        raise KeyboardInterrupt
    found = _summary(place) if code == 0 else None
    why = "" if found else f"exit code {code}: {_last_words(log)}"
    return Outcome(cell=cell, why=why, summary=found, seconds=seconds)


def _start(comparison: Comparison, cell: Cell, *, again: bool, mark: str) -> tuple[int, Path]:
    """Run the cell, its output in a log beside the run's folder; the exit code and the log."""
    comparison.folder.mkdir(parents=True, exist_ok=True)
    log = comparison.folder / f"{cell.folder}.log"
    words = ["run", comparison.recipe, "--name", cell.folder, "--output_dir", str(comparison.folder)]
    words += [*comparison.words, *comparison.overrides, *cell.overrides, "--resume" if again else "--new"]
    _keep(comparison.folder / f"{cell.folder}.{IDENTITY}", mark)
    with log.open("a", encoding="utf-8") as file:
        child = subprocess.Popen(
            [sys.executable, "-c", _START, *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            preexec_fn=ask_for_signal_on_parent_death,
        )
        try:
            return child.wait(), log
        except KeyboardInterrupt:
            child.wait()  # it has had the signal too, and ends its ranks
            raise


def _keep(path: Path, mark: str) -> None:
    path.write_text(json.dumps({"identity": mark}), encoding="utf-8")


def _mark_of(place: Path) -> str:
    path = place.with_name(f"{place.name}.{IDENTITY}")
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["identity"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _summary(place: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((place / SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _last_words(log: Path) -> str:
    """The lines that a person would read first: what is wrong, and what would be right."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith("launcher run: ")]
    at = next((index for index in reversed(range(len(lines))) if lines[index].startswith("right:")), None)
    if at:
        return f"{lines[at - 1]} ({log.name})"
    return f"{lines[-1][:200] if lines else 'no output'} ({log.name})"


def _tell(outcome: Outcome) -> None:
    if outcome.why:
        print(f"    failed: {outcome.why}", file=sys.stderr, flush=True)
        return
    quality = (outcome.summary or {}).get("quality", {})
    shown = "  ".join(f"{name} {value:.4f}" for name, value in quality.items())
    how = "finished before" if outcome.was_there else f"{outcome.seconds:.0f} s"
    print(f"    {how}  {shown}", file=sys.stderr, flush=True)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome in plain types."""
    return asdict(outcome) | {"label": outcome.cell.label}

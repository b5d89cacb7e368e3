"""Which folders were meant: a run's path, its name below `runs`, or something near that is none."""

from collections.abc import Sequence
from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.registry import nearest
from launcher.report.reading import METRICS, PLAN, SUMMARY

RUNS = Path("runs")
_TRACES = (METRICS, SUMMARY, PLAN, "recipe.yaml")


def is_run(folder: Path) -> bool:
    """Whether a run has written there, however little."""
    return any((folder / name).is_file() for name in _TRACES)


def find_run(typed: str) -> Path:
    """The run folder that was meant. Raises BadValue with what is near."""
    path = Path(typed).expanduser()
    for folder in (path, RUNS / typed):
        if folder.is_dir() and is_run(folder):
            return folder
    if path.is_file() and is_run(path.parent):
        raise _not_a_run(typed, "this is a file of a run", f"launcher report {path.parent}")
    if not path.is_dir():
        raise _not_a_run(typed, "there is no such run folder", _near(path))
    if is_run(path.parent):
        raise _not_a_run(typed, "this is a part of a run", f"launcher report {path.parent}")
    inside = runs_in(path)
    if inside:
        raise _not_a_run(
            typed, f"this folder holds {len(inside)} run(s)", f"launcher report {_typed(inside)}"
        )
    raise _not_a_run(typed, "this is no run folder: nothing of a run is in it", _near(path))


def runs_in(folder: Path) -> list[Path]:
    """The run folders directly below."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and is_run(path))


def labels(folders: Sequence[Path]) -> list[str]:
    """A name a run: its folder's, with as many of the folders above as tell it apart."""
    paths = [folder.resolve().parts for folder in folders]
    depth = 1
    while depth < max(map(len, paths)) and len({path[-depth:] for path in paths}) < len({*paths}):
        depth += 1
    return ["/".join(path[-depth:]) for path in paths]


def _near(path: Path) -> str:
    known = [*runs_in(path.parent if path.parent.is_dir() else RUNS), *runs_in(RUNS)]
    names = {folder.name: folder for folder in known}
    close = nearest(path.name, names)
    return f"launcher report {names[close]}" if close else f"launcher report {_typed(known) or 'runs/NAME'}"


def _typed(folders: Sequence[Path]) -> str:
    return " ".join(str(folder) for folder in folders[:4])


def _not_a_run(typed: str, what: str, type_: str) -> BadValue:
    right = f"a run folder: the one that holds {METRICS}, recipe.yaml and checkpoint-N"
    return BadValue(Problem(where=typed, what=what, right=right, type=type_))

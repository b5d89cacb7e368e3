"""Which folders were meant: a run's path, its name where runs go, or something near that is none."""

import os
from collections.abc import Sequence
from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.hardware.placement import runs_folder
from launcher.registry import nearest
from launcher.report.reading import METRICS, PLAN, SUMMARY

_TRACES = (METRICS, SUMMARY, PLAN, "recipe.yaml")


def is_run(folder: Path) -> bool:
    """Whether a run has written there, however little."""
    return any((folder / name).is_file() for name in _TRACES)


def find_run(typed: str) -> Path:
    """The run folder that was meant. Raises BadValue with what is near."""
    path = Path(typed).expanduser()
    for folder in (path, *(place / typed for place in _runs())):
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


def _runs() -> list[Path]:
    """Where runs lie when nobody has said where: `runs` here, and a rented machine's data disk."""
    return [*dict.fromkeys([Path("runs"), runs_folder(os.environ, Path.cwd())])]


def _near(path: Path) -> str:
    places = [*([path.parent] if path.parent.is_dir() else []), *_runs()]
    known = [*dict.fromkeys(run for place in places for run in runs_in(place))]
    names = {folder.name: folder for folder in known}
    close = nearest(path.name, names)
    return f"launcher report {names[close]}" if close else f"launcher report {_typed(known) or 'runs/NAME'}"


def _typed(folders: Sequence[Path]) -> str:
    return " ".join(str(folder) for folder in folders[:4])


def _not_a_run(typed: str, what: str, type_: str) -> BadValue:
    right = f"a run folder: the one that holds {METRICS}, recipe.yaml and checkpoint-N"
    return BadValue(Problem(where=typed, what=what, right=right, type=type_))

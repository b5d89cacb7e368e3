"""The shipped recipes: where they lie, their names, and the file behind a name."""

from functools import cache
from pathlib import Path

from launcher.errors import Problem, UnknownSetting
from launcher.recipe.provenance import shown
from launcher.registry import nearest

SUFFIXES = (".yaml", ".yml")


@cache
def folder() -> Path:
    """The folder of shipped recipes: inside an installed package, else beside it in the clone."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_recipes"
    return installed if installed.is_dir() else package.parent / "recipes"


def names() -> list[str]:
    """Every shipped recipe's name, sorted."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def is_file_name(text: str) -> bool:
    """Whether the text names a file rather than a shipped recipe."""
    return text.endswith(SUFFIXES) or "/" in text or "\\" in text


def exists(path: Path) -> bool:
    """Whether there is something; what cannot be a path at all is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_shipped(path: Path) -> bool:
    """Whether the file is one of the shipped recipes."""
    return path.parent == folder()


def find(name_or_file: str, beside: Path | None = None, where: str = "") -> Path:
    """The recipe's absolute file. Files are sought `beside` (else in the working directory).

    Raises UnknownSetting with the nearest name where there is neither a shipped recipe nor a file.
    """
    base = beside or Path.cwd()
    shipped = folder() / f"{name_or_file.removesuffix('.yaml')}.yaml"
    candidate = base / Path(name_or_file).expanduser()
    if is_file_name(name_or_file):
        places = [candidate, *([shipped] if "/" not in name_or_file else [])]
    else:
        places = [
            shipped,
            *([candidate] if name_or_file and exists(candidate) and candidate.is_file() else []),
        ]
        places += [base / f"{name_or_file}{suffix}" for suffix in SUFFIXES]
    for place in places:
        if exists(place):
            return place.resolve()
    raise UnknownSetting(_not_found(name_or_file, base, where))


def _not_found(name_or_file: str, base: Path, where: str) -> Problem:
    stem = Path(name_or_file).stem if is_file_name(name_or_file) else name_or_file
    here = sorted(path.name for path in base.iterdir() if path.suffix in SUFFIXES) if base.is_dir() else []
    close = nearest(stem, names()) or nearest(name_or_file, here)
    return Problem(
        where=where,
        what=f"there is no recipe '{name_or_file}', neither shipped nor a file in {shown(base) or base}",
        right=f"a file, or one of: {', '.join(names())}",
        type=close or "launcher ls",
    )

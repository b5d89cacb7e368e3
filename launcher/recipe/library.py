"""The shipped recipes: where they lie, their names, and the file behind a name."""

from difflib import get_close_matches
from functools import cache
from pathlib import Path

from launcher.errors import Problem, UnknownSetting
from launcher.recipe.provenance import shown
from launcher.registry import nearest

SUFFIXES = (".yaml", ".yml")
BASES = "bases"  # what several recipes extend; no job by itself
PLANNED = "# Planned: "  # how the generated first line of a shipped recipe begins
DOES_NOT_FIT = "does_not_fit"  # jobs that people ask for and that no planned form fits on their card


@cache
def folder() -> Path:
    """The folder of shipped recipes: inside an installed package, else beside it in the clone."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_recipes"
    return installed if installed.is_dir() else package.parent / "recipes"


def names() -> list[str]:
    """Every shipped recipe's name, sorted."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def refused_names() -> list[str]:
    """Jobs that do not fit their card, or are refused: kept so that the answer can be read."""
    return sorted(path.stem for path in (folder() / DOES_NOT_FIT).glob("*.yaml"))


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
    """Whether the file is one of the shipped recipes, or a base of them."""
    return path.parent in (folder(), folder() / BASES, folder() / DOES_NOT_FIT)


def _shipped(name: str) -> list[Path]:
    """Where a shipped file of this name would lie: `lora_7b_3090`, or `bases/lora` for a base."""
    kind, _, stem = name.removesuffix(".yaml").rpartition("/")
    if "/" in kind or "\\" in name or stem.startswith("."):
        return []
    inside = {"": ("", DOES_NOT_FIT), BASES: (BASES,)}.get(kind, ())
    return [folder() / each / f"{stem}.yaml" for each in inside]


def find(name_or_file: str, beside: Path | None = None, where: str = "") -> Path:
    """The recipe's absolute file. Files are sought `beside` (else in the working directory).

    Raises UnknownSetting with the nearest name where there is neither a shipped recipe nor a file.
    """
    base = beside or Path.cwd()
    shipped = _shipped(name_or_file)
    candidate = base / Path(name_or_file).expanduser()
    if is_file_name(name_or_file):
        places = [candidate, *shipped]
    else:
        places = [
            *shipped,
            *([candidate] if name_or_file and exists(candidate) and candidate.is_file() else []),
        ]
        places += [base / f"{name_or_file}{suffix}" for suffix in SUFFIXES]
    for place in places:
        if exists(place) and not (place == candidate and place.is_dir()):
            return _named_well(place.resolve(), where)
    raise UnknownSetting(_not_found(name_or_file, base, where))


def _named_well(path: Path, where: str) -> Path:
    """A run's folder has its recipe's name: `...yaml` would write into the folder above."""
    if path.stem.strip("."):
        return path
    raise UnknownSetting(
        Problem(
            where=where,
            what=f"'{path.name}' leaves no name for the run's folder",
            right="a file name with letters in front of .yaml",
            type=f"mv {shown(path)} job.yaml",
        )
    )


def _not_found(name_or_file: str, base: Path, where: str) -> Problem:
    if name_or_file and is_folder(base / Path(name_or_file).expanduser()):
        return _folder(name_or_file, base / Path(name_or_file).expanduser(), where)
    if name_or_file.endswith(":"):
        right = "on the command line a setting is key=value, without a space"
        what = f"'{name_or_file}' is no recipe"
        return Problem(where=where, what=what, right=right, type=f"{name_or_file.rstrip(':')}=VALUE")
    stem = Path(name_or_file).stem if is_file_name(name_or_file) else name_or_file
    here = sorted(path.name for path in base.iterdir() if path.suffix in SUFFIXES) if base.is_dir() else []
    holding = _holding(stem)
    close = nearest(stem, holding) or next(iter(holding), None)
    close = close or nearest(stem, names()) or nearest(name_or_file, here)
    return Problem(
        where=where,
        what=f"there is no recipe '{name_or_file}', neither shipped nor a file in {shown(base) or base}",
        right=f"a file, or a name of `launcher ls` ({len(names())}), such as {', '.join(_like(stem))}",
        type=close or "launcher ls",
    )


def is_folder(path: Path) -> bool:
    """Whether there is a folder; what cannot be a path at all is none."""
    return exists(path) and path.is_dir()


def _folder(typed: str, path: Path, where: str) -> Problem:
    """A folder is no recipe; a run's folder holds one."""
    inside = sorted(each.name for each in path.iterdir() if each.suffix in SUFFIXES)
    first = "recipe.yaml" if "recipe.yaml" in inside else next(iter(inside), None)
    return Problem(
        where=where,
        what=f"'{typed}' is a folder",
        right="a recipe's file" + (f"; in it: {', '.join(inside[:6])}" if inside else ", and it holds none"),
        type=str(Path(typed) / first) if first else "launcher ls",
    )


def _like(name: str) -> list[str]:
    """A few shipped names, the most alike first; the quickstart is always among them."""
    alike = get_close_matches(name, names(), n=5, cutoff=0.5)
    return list(dict.fromkeys([*alike, *_holding(name)[:5], "quickstart"]))


def _holding(name: str) -> list[str]:
    """Shipped names that hold what was typed, whatever the signs between: `llama3`, `qwen3-8b`."""
    wanted = _bare(name)
    return [each for each in names() if len(wanted) > 3 and wanted in _bare(each)]


def _bare(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())

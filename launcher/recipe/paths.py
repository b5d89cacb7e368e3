"""Files that a recipe names: sought beside it, in the working directory, beside the shipped recipes."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from launcher.data.place import files_in, is_pattern
from launcher.recipe.library import exists, folder
from launcher.recipe.provenance import Leaf, shown
from launcher.registry import nearest

PATH_KEYS = (
    ("data", "train_file"),
    ("data", "eval_file"),
    ("model", "model_name_or_path"),
    ("training", "resume_from_checkpoint"),
)


def candidates(text: str, recipe_path: Path) -> list[Path]:
    """Every place where the file may lie, the preferred one first, each once."""
    path = Path(text).expanduser()
    if path.is_absolute():
        return [path]
    places = [recipe_path.resolve().parent / path, Path.cwd() / path, folder() / path]
    return list(dict.fromkeys(Path(str(place)) for place in places))


def resolve(text: str, recipe_path: Path) -> Path:
    """The file's absolute path; the preferred place where it exists nowhere."""
    places = candidates(text, recipe_path)
    return next((place for place in places if exists(place)), places[0])


def path_slip(text: str) -> tuple[str, str] | None:
    """What is wrong with a path that is not meant as it stands: what is right, and the path to type."""
    if re.search(r"\$\{?\w", text):
        return "the path written out: a recipe fills in no variables; the shell does, behind key=", text
    if re.match(r"[A-Za-z]:[\\/]", text):
        rest = text[3:].replace("\\", "/")
        return (
            "a path of this machine; in WSL a Windows disk lies below /mnt",
            f"/mnt/{text[0].lower()}/{rest}",
        )
    if "\\" in text:
        return "slashes, not backslashes", text.replace("\\", "/")
    plain = text.strip("\u201c\u201d\u2018\u2019\"' \u3000")
    return ("no quotes and no spaces around it", plain) if plain != text else None


def near_file(places: Sequence[Path]) -> str:
    """A file that lies where one was sought, under nearly the same name; empty where none does.

    Not among the shipped data, which nobody means by a slip.
    """
    for path in places:
        try:
            around = islice(path.parent.iterdir(), 1000) if not path.is_relative_to(folder()) else ()
            names = [each.name for each in around if each.is_file()]
        except OSError:
            continue
        same = [name for name in names if name.lower() == path.name.lower()]
        if close := same[0] if same else nearest(path.name, names, cutoff=0.75):
            return shown(path.parent / close)
    return ""


def place(leaf: Leaf) -> Leaf:
    """The leaf with its file's absolute path, sought from where the value was written.

    What exists nowhere stays as it is: a hub id, or a file that the person still has to bring.
    """
    if leaf.path not in PATH_KEYS or not isinstance(leaf.value, str) or leaf.value in ("", "auto"):
        return leaf
    written_in = Path(leaf.origin.file) if leaf.origin.file else Path.cwd() / "command line"
    places = candidates(leaf.value, written_in)
    if leaf.path[0] == "data" and is_pattern(leaf.value):
        found = next((each for each in places if files_in(each)), None)
        return replace(leaf, value=str(found)) if found else leaf
    if leaf.path[0] != "data":
        places = [each for each in places if exists(each) and each.is_dir()]
        places = [each for each in places if not each.is_relative_to(folder())]
    found = next((each for each in places if exists(each)), None)
    return replace(leaf, value=str(found)) if found else leaf

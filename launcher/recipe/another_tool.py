"""A file of another tool where a recipe belongs: one finding that says which verb reads it, not one a key."""

from pathlib import Path

from launcher.backends.file_kind import kind_of
from launcher.errors import Problem, RecipeError
from launcher.recipe.document import read_document
from launcher.recipe.keys import sections
from launcher.recipe.provenance import shown

_OURS = frozenset({"extends", "task", "data", "training", "summary", "hardware", "freeze", "tracking"})


def of_another_tool(path: Path) -> Problem | None:
    """The finding, or None where the file is a recipe, or nobody's that is known. To be asked on failure."""
    entries = read_document(path).entries
    keys = set(entries)
    if keys & _OURS or not keys or any(isinstance(entries[key].value, dict) for key in keys & {*sections()}):
        return None
    name = shown(path)
    kind = kind_of(dict.fromkeys(keys))
    if kind in ("accelerate", "deepspeed"):
        title, option = {
            "accelerate": ("an Accelerate YAML", "--config_file"),
            "deepspeed": ("a DeepSpeed JSON", "--ds"),
        }[kind]
        right = f"a recipe; {option} holds such a file against one"
        return Problem(
            where=name, what=f"this is {title}", right=right, type=f"launcher check NAME {option} {name}"
        )
    from launcher.recipe.importing.importer import recognise
    from launcher.recipe.importing.source import read_source

    try:
        title = recognise(read_source(path)).title
    except RecipeError:
        return None
    return Problem(
        where=name,
        what=f"this is a file of another tool ({title}), no recipe",
        right="a recipe; launcher import makes one of it, and tells what it could not carry over",
        type=f"launcher import {name} --out mine.yaml",
    )

"""Every key that a recipe may hold, read off the schema: no list of names is kept by hand."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.options import Options
from launcher.recipe.schema import Recipe

# Sections that are one of several pieces: the key that tells which, and where the pieces are.
PIECES: dict[str, tuple[str, Any]] = {"adapter": ("method", METHODS), "backend": ("name", BACKENDS)}

# What a section means that says only one word.
SHORTHANDS = {
    "model": "model_name_or_path",
    "data": "train_file",
    "adapter": "method",
    "freeze": "modules",
    "backend": "name",
    "hardware": "gpu",
    "tracking": "report_to",
}


def sections() -> list[str]:
    """The names of all sections."""
    return [name for name, field in Recipe.model_fields.items() if name in PIECES or _is_options(field)]


def _is_options(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, Options)


def options_of(section: str, piece: str | None = None) -> list[type[Options]]:
    """The option models of a section: of one piece, or of all pieces that it could be."""
    if section not in PIECES:
        annotation = Recipe.model_fields[section].annotation
        return [annotation] if isinstance(annotation, type) else []
    known = PIECES[section][1]
    return [known.get(piece).options] if piece in known.names() else [each.options for each in known]


def fields_of(section: str, piece: str | None = None) -> Mapping[str, FieldInfo]:
    """The keys of one section, the fields of several pieces together."""
    return {name: field for model in options_of(section, piece) for name, field in model.model_fields.items()}


def _walk() -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, field in Recipe.model_fields.items():
        if name in sections():
            yield from (((name, key), inner) for key, inner in fields_of(name).items())
        else:
            yield (name,), field


@cache
def known() -> Mapping[tuple[str, ...], FieldInfo]:
    """Every key of every section and piece, by its path."""
    return dict(_walk())


def is_free(path: tuple[str, ...]) -> bool:
    """Whether the key holds a mapping whose names the person chooses."""
    return path in known() and str(known()[path].annotation).startswith("dict[")


def is_known(path: tuple[str, ...]) -> bool:
    """Whether the path is a key, or a name inside a mapping of free names."""
    return path in known() or (len(path) > 1 and is_free(path[:-1]))


def ending_with(parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The full paths that a shortened key may mean: `learning_rate`, `fill.name`."""
    exact = [path for path in known() if path[-len(parts) :] == parts]
    inside = [
        (*path, parts[-1]) for path in known() if is_free(path) and path[-len(parts[:-1]) :] == parts[:-1]
    ]
    return exact or (inside if len(parts) > 1 else [])

"""Every key of a recipe as the manual tells it, read off the option models: nothing is kept by hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from launcher.options import Options
from launcher.recipe.aliases import ALIASES
from launcher.recipe.dump import written
from launcher.recipe.keys import PIECES, ending_with, options_of, sections
from launcher.recipe.schema import Recipe
from launcher.recipe.training import Every

_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null"}
_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key: where it stands, what it takes, what it is by default, what it is for.

    `pieces` are the methods or backends that have it, empty where all do. `typed` is the shortest name on the
    command line; `also` the names of other tools that mean it.
    """

    path: tuple[str, ...]
    takes: str
    default: str
    description: str
    pieces: tuple[str, ...]
    typed: str
    also: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted key."""
        return ".".join(self.path)


def keys() -> list[Key]:
    """All keys, section by section in the schema's order; those inside a value (context.turns) behind it."""
    found: list[Key] = []
    for name, info in Recipe.model_fields.items():
        if name in sections():
            found += _of_section(name)
        else:
            found.append(_key((name,), info, ()))
    return found


def matching(pattern: str) -> list[Key]:
    """The keys whose name, other names or description hold the text."""
    text = pattern.lower()
    return [
        key
        for key in keys()
        if text in key.name.lower() or text in key.description.lower() or text in " ".join(key.also).lower()
    ]


def _of_section(section: str) -> list[Key]:
    """Fields of all pieces, each once, with the pieces that have it."""
    found: dict[str, tuple[FieldInfo, list[str]]] = {}
    models = options_of(section)
    for model in models:
        for name, info in model.model_fields.items():
            found.setdefault(name, (info, []))[1].append(_piece(section, model))
    every = [_piece(section, model) for model in models]
    rows: list[Key] = []
    for name, (info, pieces) in found.items():
        rows.append(_key((section, name), info, () if pieces == every else tuple(pieces), section))
        rows += [_key((section, name, inner), each, ()) for inner, each in _inside(info.annotation)]
    return rows


def _piece(section: str, model: type[Options]) -> str:
    return str(model.model_fields[PIECES[section][0]].default) if section in PIECES else ""


def _inside(annotation: Any) -> Iterator[tuple[str, FieldInfo]]:
    """The fields of options that a key's value may be."""
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, Options) and each is not Every:
            yield from each.model_fields.items()


def _key(path: tuple[str, ...], info: FieldInfo, pieces: tuple[str, ...], section: str = "") -> Key:
    is_choice = section in PIECES and path[-1] == PIECES[section][0]
    return Key(
        path=path,
        takes=" · ".join(PIECES[section][1].names()) if is_choice else _takes(info.annotation, info.metadata),
        default={"adapter": "full", "backend": "single_gpu"}[section] if is_choice else _default(info),
        description=_CHOICES[section] if is_choice else info.description or "",
        pieces=() if is_choice else pieces,
        typed=_typed(path),
        also=tuple(sorted(name for name, alias in ALIASES.items() if alias.key == ".".join(path))),
    )


_CHOICES = {"adapter": "How the model is fine-tuned.", "backend": "How the step is spread over processes."}


def _default(info: FieldInfo) -> str:
    if info.default_factory is not None:
        return "{}"
    if info.default is PydanticUndefined:
        return "required"
    if info.default is None:
        return "-"
    if isinstance(info.default, Options):
        return ""
    return written(info.default)


def _typed(path: tuple[str, ...]) -> str:
    """The shortest name that means this key alone."""
    if len(path) > 2:
        return f"{'.'.join(path[:2])}={{{path[2]}: ...}}"
    for start in range(len(path) - 1, -1, -1):
        if ending_with(path[start:]) == [path]:
            return ".".join(path[start:])
    return ".".join(path)


def _takes(annotation: Any, metadata: list[Any]) -> str:
    """The values in words: choices, kinds, bounds."""
    text = _kind(annotation)
    bounds = [
        f"{sign} {getattr(each, name):g}"
        for each in metadata
        for name, sign in _SIGNS.items()
        if hasattr(each, name)
    ]
    return f"{text}, {' and '.join(bounds)}" if bounds else text


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation is Every:
        return "`200 steps`, `5000 rows`, `0.5 epochs`, `epoch`"
    if origin is Annotated:
        return _takes(inner[0], [part for each in inner[1:] for part in _constraints(each)])
    if origin is Literal:
        return " · ".join(map(str, inner))
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_kind(each) for each in inner if each is not type(None)))
    if origin is tuple:
        return f"list of {_kind(inner[0])}"
    if origin is dict:
        return "mapping of names to text"
    return "mapping, keys below"


def _constraints(part: Any) -> list[Any]:
    return list(part.metadata) if isinstance(part, FieldInfo) else [part]

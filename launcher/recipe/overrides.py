"""`key=value` from the command line: the shortest key that is unique, the value as in a recipe."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launcher.errors import Problem, RecipeError
from launcher.recipe.document import compose_value
from launcher.recipe.keys import ending_with, is_free, sections
from launcher.recipe.provenance import Leaf, Origin
from launcher.recipe.scalars import read_scalar

TYPED = Origin(kind="command line")
STARTER = Origin(kind="starter")


def read_overrides(arguments: Sequence[str]) -> tuple[list[Leaf], list[Problem]]:
    """The leaves that the arguments give, and a problem for each argument that gives none."""
    leaves: list[Leaf] = []
    problems: list[Problem] = []
    for argument in arguments:
        try:
            leaves.extend(read_override(argument))
        except RecipeError as error:
            problems.extend(error.problems)
    return leaves, problems


def read_override(argument: str) -> list[Leaf]:
    """One `key=value`. Raises RecipeError where it is none, or where the key is ambiguous."""
    key, equals, raw = argument.removeprefix("--").partition("=")
    if not equals or not key.strip():
        raise RecipeError(
            Problem(
                where=TYPED.place(),
                what=f"'{argument}' is no setting",
                right="key=value, such as learning_rate=1e-5",
                type=f"{key.strip() or 'key'}=...",
            )
        )
    path = full_path(key.strip())
    _refuse_two_in_one(argument, raw)
    value, typed = read_value(raw, path)
    return list(unfold(path, value, typed, TYPED))


def _refuse_two_in_one(argument: str, raw: str) -> None:
    """`backend=zero2,gpus=2` is two settings in one word."""
    second = re.search(r",\s*([a-z_.]+)=", raw)
    if second and raw.strip()[:1] not in "[{\"'" and ending_with(tuple(second[1].split("."))):
        raise RecipeError(
            Problem(
                where=TYPED.place(),
                what=f"'{argument}' is two settings in one word",
                right="a space between two settings",
                type=re.sub(r",\s*([a-z_.]+=)", r" \1", argument),
            )
        )


def full_path(key: str) -> tuple[str, ...]:
    """The path that a short key means; as it stands where it means nothing (told later)."""
    parts = tuple(key.split("."))
    if parts == ("extends",):
        raise RecipeError(
            Problem(
                where=TYPED.place(),
                what="extends: a parent is named in a recipe, not on the command line",
                right="a recipe with the line extends: NAME",
                type="--recipe FILE",
            )
        )
    return choose(key, ending_with(parts)) or parts


def choose(key: str, meanings: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The only meaning; None where there is none. Raises RecipeError where there are several."""
    if len(meanings) < 2:
        return meanings[0] if meanings else None
    full = [".".join(path) for path in meanings]
    raise RecipeError(
        Problem(
            where=TYPED.place(),
            what=f"{key}: this may mean {' or '.join(full)}",
            right="the key with its section",
            type=f"{full[0]}=...",
        )
    )


def read_value(raw: str, path: tuple[str, ...]) -> tuple[Any, Any]:
    """A scalar, or a list or mapping in brackets, and its text as typed; quotes are taken off."""
    if raw.strip()[:1] not in ("[", "{", '"', "'"):
        return read_scalar(raw.strip()), raw
    try:
        return compose_value(raw.strip(), Path(".".join(path)))
    except RecipeError as error:
        if raw.strip()[0] in ("[", "{"):
            problem = Problem(
                where=TYPED.place(),
                what=f"{'.'.join(path)}: '{raw}' is neither a list nor a mapping",
                right="brackets that close: [a, b] or {name: value}",
                type=f'"{".".join(path)}=[a, b]"',
            )
            raise RecipeError(problem) from error
        return raw, raw


def unfold(path: tuple[str, ...], value: Any, raw: Any, origin: Origin) -> Iterable[Leaf]:
    """The leaves of one given value: a section or a mapping of free names falls into its keys."""
    if isinstance(value, dict) and value and (path[0] in sections() and len(path) == 1 or is_free(path)):
        for name, inner in value.items():
            yield from unfold((*path, str(name)), inner, raw[name], origin)
    else:
        yield Leaf(path=path, value=value, raw=raw, origin=origin)


def read_extra(extra: Mapping[str, Any]) -> list[Leaf]:
    """The leaves that the starter decided; text that it was given (`--gpus 2`) is read as in a recipe."""
    return [
        Leaf(
            path=tuple(key.split(".")),
            value=read_scalar(value) if isinstance(value, str) else value,
            raw=str(value),
            origin=STARTER,
        )
        for key, value in extra.items()
    ]

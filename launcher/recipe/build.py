"""A `Recipe` out of merged values, with every value that the schema does not take told in plain words."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from launcher.errors import Problem, UnknownSetting
from launcher.recipe.keys import PIECES, known, sections
from launcher.recipe.merge import Leaves
from launcher.recipe.provenance import DEFAULT, Leaf, Origin
from launcher.recipe.schema import Recipe
from launcher.recipe.wording import group, problem_of, wrong_kind


@dataclass(frozen=True, kw_only=True)
class Built:
    """The recipe where one could be made; every problem of a value; the keys that had one."""

    recipe: Recipe | None
    leaves: Leaves
    problems: tuple[Problem, ...]
    bad_keys: tuple[str, ...] = ()


def build(leaves: Leaves, file: Origin) -> Built:
    """Make the recipe. `file` is named where a key is missing.

    With problems, the recipe is made from the sound values, so that rules between keys can be told too.
    """
    usable, problems = _without_unknown_pieces(leaves)
    usable, unusable = _sound(usable)
    problems += unusable
    recipe, errors = _validate(usable)
    if any(error["type"] == "string_type" for error in errors):
        usable = _as_typed(usable, errors)
        recipe, errors = _validate(usable)
    bad = group(errors)
    problems += [problem_of(path, found, usable.get(path), file) for path, found in bad.items()]
    if bad:
        usable = {path: leaf for path, leaf in usable.items() if path not in bad}
        recipe, _ = _validate(usable)
    keys = {*bad, *(path for path in leaves if path not in usable)}
    bad_keys = tuple(".".join(path) for path in keys)
    return Built(recipe=recipe, leaves=usable, problems=tuple(problems), bad_keys=bad_keys)


def nested(leaves: Leaves) -> dict[str, Any]:
    """The values as sections of keys."""
    tree: dict[str, Any] = {"model": {}, "data": {}}
    for path in sorted(leaves, key=len):  # a whole mapping before the names inside it
        branch: Any = tree
        for part in path[:-1]:
            branch = branch.setdefault(part, {}) if isinstance(branch, dict) else None
        if isinstance(branch, dict):
            value = leaves[path].value
            branch[path[-1]] = dict(value) if isinstance(value, dict) else value
    return tree


def _validate(leaves: Leaves) -> tuple[Recipe | None, list[ErrorDetails]]:
    tree = nested(leaves)
    for section, (choice, _) in PIECES.items():
        if section in tree:
            tree[section].setdefault(choice, {"adapter": "full", "backend": "single_gpu"}[section])
    try:
        return Recipe.model_validate(tree), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _without_unknown_pieces(leaves: Leaves) -> tuple[Leaves, list[Problem]]:
    """Leave out sections whose method or backend nobody knows: one finding, not one per option."""
    problems: list[Problem] = []
    for section, (choice, pieces) in PIECES.items():
        leaf = leaves.get((section, choice))
        if leaf is None or leaf.value in pieces.names():
            continue
        try:
            pieces.get(leaf.typed, where=leaf.origin.place())
        except UnknownSetting as error:
            problems += [replace(each, what=f"{leaf.key}: {each.what}") for each in error.problems]
        leaves = {path: each for path, each in leaves.items() if path[0] != section}
    return leaves, problems


def _sound(leaves: Leaves) -> tuple[Leaves, list[Problem]]:
    """Leave out numbers without end, and `true` where a number is wanted: it would become 1 in silence."""
    problems: list[Problem] = []
    for leaf in leaves.values():
        if _has_no_end(leaf):
            problems.append(wrong_kind(leaf, "a finite number"))
        elif isinstance(leaf.value, bool) and _wants_a_number(leaf.path):
            problems.append(wrong_kind(leaf, "a number"))
        else:
            continue
        leaves = {path: each for path, each in leaves.items() if each is not leaf}
    return leaves, problems


def _has_no_end(leaf: Leaf) -> bool:
    """`.inf`, and the words that Python reads as such numbers."""
    if isinstance(leaf.value, float):
        return not math.isfinite(leaf.value)
    words = ("inf", "infinity", "nan")
    return (
        isinstance(leaf.value, str)
        and leaf.value.lower().lstrip("+-") in words
        and _wants_a_number(leaf.path)
    )


def _wants_a_number(path: tuple[str, ...]) -> bool:
    kinds = set(_kinds(known()[path].annotation)) if path in known() else set()
    return bool(kinds & {int, float}) and bool not in kinds


def _kinds(annotation: Any) -> Iterator[Any]:
    """The plain types inside an annotation."""
    inner = get_args(annotation)
    yield from [annotation] if not inner else [kind for each in inner for kind in _kinds(each)]


def _as_typed(leaves: Leaves, errors: list[ErrorDetails]) -> Leaves:
    """Where text is wanted, `7` and `true` are the text that was typed."""
    wanted = {
        path for path, found in group(errors).items() if any(each["type"] == "string_type" for each in found)
    }
    return {
        path: replace(leaf, value=_text(leaf)) if path in wanted and path in leaves else leaf
        for path, leaf in leaves.items()
    }


def _text(leaf: Leaf) -> Any:
    if isinstance(leaf.value, list):
        raws = leaf.raw if isinstance(leaf.raw, list) else [str(value) for value in leaf.value]
        return [raw if isinstance(raw, str) else value for raw, value in zip(raws, leaf.value, strict=True)]
    return leaf.raw if isinstance(leaf.value, int | float) else leaf.value


def value_at(recipe: Recipe, path: tuple[str, ...]) -> Any:
    """The recipe's value under a path; None where there is none."""
    value: Any = recipe
    for part in path:
        value = value.get(part) if isinstance(value, dict) else getattr(value, part, None)
    return value


def origins(recipe: Recipe, leaves: Leaves) -> dict[str, Origin]:
    """Where every value of the recipe came from, by dotted key, in the order of the schema."""
    found: dict[str, Origin] = {}
    for path in _paths(recipe):
        leaf: Leaf | None = leaves.get(path)
        found[".".join(path)] = leaf.origin if leaf else DEFAULT
    return found


def _paths(recipe: Recipe) -> Iterator[tuple[str, ...]]:
    for name in Recipe.model_fields:
        if name not in sections():
            yield (name,)
            continue
        for key in type(getattr(recipe, name)).model_fields:
            value = getattr(getattr(recipe, name), key)
            yield from (
                [(name, key, inner) for inner in value]
                if isinstance(value, dict) and value
                else [(name, key)]
            )

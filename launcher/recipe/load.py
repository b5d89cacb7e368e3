"""From a name and `key=value` to a frozen `Recipe`: found, inherited, overridden, checked, with origins."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from launcher.errors import Problem, RecipeError
from launcher.hardware.placement import OUTPUT_VARIABLE
from launcher.recipe.another_tool import of_another_tool
from launcher.recipe.build import build, origins
from launcher.recipe.library import find, is_file_name, is_shipped
from launcher.recipe.merge import Leaves, merge
from launcher.recipe.overrides import read_extra, read_overrides
from launcher.recipe.parents import lineage
from launcher.recipe.paths import place
from launcher.recipe.provenance import Leaf, Origin
from launcher.recipe.rules import notices_of, problems_of
from launcher.recipe.schema import Recipe
from launcher.recipe.translate import Layer, flatten, translate

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class LoadedRecipe:
    """A recipe that can be used, where each value came from (by dotted key), and what to tell."""

    name: str
    path: Path
    recipe: Recipe
    origins: dict[str, Origin]
    notices: tuple[str, ...] = ()


def load_recipe(
    name_or_file: str, overrides: Sequence[str] = (), *, extra: Mapping[str, Any] = NOTHING
) -> LoadedRecipe:
    """Load a shipped recipe or a file. `extra` holds what the starter decided, by dotted key.

    Raises RecipeError with every problem at once.
    """
    path = find(name_or_file)
    typed, problems = read_overrides(overrides)
    merged = merge([*file_layers(path), translate(typed), translate(read_extra(extra))])
    leaves = _derive(_output({key: place(leaf) for key, leaf in merged.leaves.items()}))
    built = build(leaves, Origin(kind="recipe", file=str(path)))
    problems += [*merged.problems, *_not_suggested(built.problems, merged.problems)]
    if problems and (other := of_another_tool(path)):
        raise RecipeError(other)
    if built.recipe is None:
        raise RecipeError(sorted(problems, key=_order))
    where = origins(built.recipe, built.leaves)
    problems += _about_sound_keys(problems_of(built.recipe, where), built.bad_keys)
    if problems:
        raise RecipeError(sorted(problems, key=_order))
    notices = (*_namesake(name_or_file, path), *merged.notices, *notices_of(built.recipe, where))
    return LoadedRecipe(name=path.stem, path=path, recipe=built.recipe, origins=where, notices=notices)


def _namesake(typed: str, path: Path) -> list[str]:
    """A file here of the shipped recipe's name: a bare name means the shipped one."""
    own = Path.cwd() / f"{typed}.yaml"
    if is_file_name(typed) or not is_shipped(path) or not own.is_file() or own.resolve() == path:
        return []
    return [f"{typed} is the shipped recipe; for the file of that name here type ./{typed}.yaml"]


def _not_suggested(problems: Sequence[Problem], others: Sequence[Problem]) -> list[Problem]:
    """Without the missing keys that a misspelt key already stands for."""
    suggested = [other.right for other in others]
    return [each for each in problems if f"{each.what.partition(':')[0]} is the nearest key" not in suggested]


def _about_sound_keys(problems: Sequence[Problem], bad_keys: Sequence[str]) -> list[Problem]:
    """Without the findings that may only follow from a key which was left out."""
    names = [key.rpartition(".")[2] for key in bad_keys]
    return [each for each in problems if not any(name in each.render() for name in names)]


def file_layers(path: Path) -> list[Layer]:
    """One layer for each file: the topmost parent first, the recipe itself last."""
    documents = lineage(path)
    kinds: list[Origin] = [
        Origin(kind="recipe" if document is documents[-1] else "parent", file=str(document.path))
        for document in documents
    ]
    return [
        translate(flatten(document.entries, kind)) for document, kind in zip(documents, kinds, strict=True)
    ]


def _output(leaves: Leaves) -> Leaves:
    """Runs go where the environment says, on a rented machine its data disk, where nobody else says it."""
    folder, path = os.environ.get(OUTPUT_VARIABLE), ("output_dir",)
    if not folder or path in leaves:
        return leaves
    origin = Origin(kind="derived", note=f"the variable {OUTPUT_VARIABLE}")
    return leaves | {path: Leaf(path=path, value=folder, raw=folder, origin=origin)}


def _derive(leaves: Leaves) -> Leaves:
    """Choose the plain backend for the number of cards where nobody named one."""
    gpus = leaves.get(("hardware", "gpus"))
    if ("backend", "name") in leaves or gpus is None or not isinstance(gpus.value, int) or gpus.value < 2:
        return leaves
    origin = Origin(kind="derived", note=f"hardware.gpus is {gpus.value}")
    path = ("backend", "name")
    return leaves | {path: Leaf(path=path, value="multi_gpu", raw="multi_gpu", origin=origin)}


def _order(problem: Problem) -> tuple[str, int]:
    """By file, then by line; the command line comes after the files."""
    file, _, line = problem.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else ("~" + problem.where, 0)

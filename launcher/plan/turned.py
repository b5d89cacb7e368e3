"""A recipe with other values under some keys, without reading it again."""

from collections.abc import Mapping
from typing import Any

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.plan.levers import BACKEND, METHOD
from launcher.recipe.schema import Recipe


def turned(recipe: Recipe, changes: Mapping[str, Any]) -> Recipe:
    """The recipe as if `changes` (dotted keys) had been typed; values must already be of the right type."""
    sections: dict[str, dict[str, Any]] = {}
    update: dict[str, Any] = {}
    for key, value in changes.items():
        if key == BACKEND:
            update["backend"] = BACKENDS.get(value).options(name=value)
        elif key == METHOD:
            update["adapter"] = METHODS.get(value).options(method=value)
        else:
            section, _, leaf = key.partition(".")
            sections.setdefault(section, {})[leaf] = value
    update |= {name: getattr(recipe, name).model_copy(update=inner) for name, inner in sections.items()}
    return recipe.model_copy(update=update) if update else recipe

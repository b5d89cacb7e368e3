"""A recipe's model in numbers, where they can be had without a network."""

from launcher.errors import LauncherError
from launcher.models.config_file import locate_config
from launcher.models.read_shape import require_dense, shape_of
from launcher.models.shape import ModelShape
from launcher.recipe.schema import Recipe


def shape_and_source(recipe: Recipe, *, ask_hub: bool = False) -> tuple[ModelShape, str]:
    """The shape and where its configuration was found. Raises CannotTell."""
    found = locate_config(recipe.model, ask_hub=ask_hub)
    labels = len(recipe.data.labels or ()) or 2
    shape = shape_of(found.values, task=recipe.task, num_labels=labels)
    return require_dense(shape), found.source


def known_shape(recipe: Recipe) -> ModelShape | None:
    """The shape, or None where it is not known: for callers that can go on without an estimate.

    A configuration may hold anything: one that cannot be read is an unknown one here.
    """
    try:
        return shape_and_source(recipe)[0]
    except (LauncherError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None

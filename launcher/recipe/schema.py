"""The whole recipe: every section is owned by its piece, and only composed here.

A new method or backend joins by registering itself; nothing in this file changes for it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import BeforeValidator, Field

from launcher.adapters.options import METHODS, AdapterOptions
from launcher.backends.options import BACKENDS, BackendOptions
from launcher.data.options import DataOptions
from launcher.hardware.options import HardwareOptions
from launcher.models.options import ModelOptions
from launcher.options import Options
from launcher.recipe.freezing import FreezeOptions
from launcher.recipe.tracking import TrackingOptions
from launcher.recipe.training import TrainingOptions

Task = Literal["classification", "causal_lm"]


def _named(key: str) -> Callable[[Any], Any]:
    """A reader that takes a bare name for the section that says only `key: name`."""
    return lambda value: {key: value} if isinstance(value, str) else value


def _choice(key: str, pieces: Iterable[type[Options]]) -> Any:
    """The type of a section that is one of `pieces`, told apart by `key`."""
    known = tuple(pieces)
    union = known[0] if len(known) == 1 else Annotated[Union[known], Field(discriminator=key)]  # noqa: UP007
    return Annotated[union, BeforeValidator(_named(key))]


if TYPE_CHECKING:
    AnyAdapter = AdapterOptions
    AnyBackend = BackendOptions
else:
    AnyAdapter = _choice("method", (method.options for method in METHODS))
    AnyBackend = _choice("name", [backend.options for backend in BACKENDS] or [BackendOptions])


def _default_adapter() -> AdapterOptions:
    """Every weight trains, where the recipe says nothing."""
    return METHODS.get("full").options(method="full")


def _default_backend() -> BackendOptions:
    """One process, where the recipe says nothing."""
    return BACKENDS.get("single_gpu").options(name="single_gpu")


class Recipe(Options):
    """One fine-tuning job. Frozen; every value is either the person's or a default."""

    summary: str = Field("", description="What this recipe is for, in one line.")
    task: Task = Field(description="What the model learns to do.")
    model: ModelOptions
    data: DataOptions
    adapter: AnyAdapter = Field(default_factory=_default_adapter)
    freeze: FreezeOptions = FreezeOptions.model_validate({})
    training: TrainingOptions = TrainingOptions.model_validate({})
    backend: AnyBackend = Field(default_factory=_default_backend)
    hardware: HardwareOptions = HardwareOptions.model_validate({})
    tracking: TrackingOptions = TrackingOptions.model_validate({})
    output_dir: str = Field("runs", min_length=1, description="Folder that holds the run folders.")

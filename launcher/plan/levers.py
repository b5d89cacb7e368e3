"""What may be turned to make a recipe fit or run faster: keys, the values worth trying, how far they go.

A lever's `distance` orders answers to "what is the nearest thing that fits": keeping the numbers comes
before changing them, and changing rounding before changing what is trained. A value that a person gave is
offered as an alternative, never changed silently.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, get_args

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS, Backend
from launcher.backends.support import Refused, cell
from launcher.models.shape import ModelShape
from launcher.optim.table import works_on
from launcher.recipe.schema import Recipe
from launcher.recipe.training import TrainingOptions
from launcher.units import MIB

MICRO = "training.per_device_train_batch_size"
BACKEND = "backend.name"
CHECKPOINTING = "training.activation_checkpointing"
CHUNK = "training.loss_chunk_bytes"
ATTENTION = "model.attn_implementation"
PRECISION = "training.precision"
OPTIMIZER = "training.optim"
FOUR_BITS = "model.load_in_4bit"
LENGTH = "data.max_length"
METHOD = "adapter.method"

# The same numbers on every cut of the batch, with recomputation, chunks or another backend; other
# rounding with another kernel, precision or optimizer; other results with 4-bit weights; other rows and
# another method only where nothing else fits.
DISTANCE = {
    MICRO: 1,
    CHUNK: 2,
    CHECKPOINTING: 2,
    BACKEND: 3,
    ATTENTION: 4,
    PRECISION: 6,
    OPTIMIZER: 8,
    FOUR_BITS: 12,
    LENGTH: 20,
    METHOD: 40,
}
_CHUNK_BYTES = 256 * MIB
_LEAST_LENGTH = 128
_LIGHT_OPTIMIZERS = ("8bit", "adafactor")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A set of changed keys."""

    changes: Mapping[str, Any]

    @property
    def distance(self) -> int:
        """How far this is from what was asked."""
        return sum(DISTANCE[key] for key in self.changes)


def typed(changes: Mapping[str, Any]) -> str:
    """The changes as a person types them behind `launcher plan NAME` or `launcher run NAME`."""
    return " ".join(_typed(key, value) for key, value in changes.items())


def _typed(key: str, value: Any) -> str:
    if key == BACKEND:
        return f"--backend {value}"
    if key == METHOD:
        return f"adapter.method={value}"
    shown = str(value).lower() if isinstance(value, bool) else value
    return f"{key.rpartition('.')[2]}={shown}"


def turns(
    recipe: Recipe, shape: ModelShape, num_ranks: int, *, on_card: bool = True, far: bool = False
) -> Iterator[Turn]:
    """Every combination worth a look, the recipe itself first; `far` adds shorter rows and LoRA."""
    axes = [_backends(recipe, num_ranks, on_card=on_card), *_training(recipe, shape)]
    if far:
        axes += [_lengths(recipe), _methods(recipe)]
    for choice in product(*axes):
        changes = {key: value for part in choice for key, value in part.items()}
        if _is_possible(recipe, changes):
            yield Turn(changes=changes)


def _training(recipe: Recipe, shape: ModelShape) -> list[list[dict[str, Any]]]:
    options, model = recipe.training, recipe.model
    axes: list[list[dict[str, Any]]] = [
        [{}, {CHECKPOINTING: not options.activation_checkpointing}],
        [{}, {CHUNK: _CHUNK_BYTES}]
        if recipe.task == "causal_lm" and options.loss_chunk_bytes is None
        else [{}],
        [{}, {ATTENTION: "sdpa"}]
        if model.attn_implementation == "eager" and "sdpa" in shape.attention_kernels
        else [{}],
        [{}, {PRECISION: "auto"}] if options.precision == "fp32" else [{}],
        [{}, *({OPTIMIZER: name} for name in _light_optimizers() if name != options.optim)],
    ]
    frozen = not METHODS.get(recipe.adapter.method).trains_base
    axes.append([{}, {FOUR_BITS: True}] if frozen and not model.is_quantised else [{}])
    return axes


def _light_optimizers() -> list[str]:
    """Optimizers of the recipe's schema whose states are smaller than AdamW's."""
    known = get_args(TrainingOptions.model_fields["optim"].annotation)
    return [name for name in known if any(word in str(name) for word in _LIGHT_OPTIMIZERS)]


def _backends(recipe: Recipe, num_ranks: int, *, on_card: bool) -> list[dict[str, Any]]:
    """The recipe's own, then every other that these ranks make sense of."""
    own = recipe.backend.name
    others = [each.name for each in BACKENDS if each.name != own and _is_sensible(each, num_ranks, on_card)]
    return [{}, *({BACKEND: name} for name in others)]


def _is_sensible(backend: Backend, num_ranks: int, on_card: bool) -> bool:
    """On one card only what leaves it helps, on a CPU nothing is to leave.

    A disk and naive layers over cards are a person's own choice.
    """
    leaves = backend.sharding.offload_optimizer or backend.sharding.offload_parameters
    if backend.name in ("zero3_nvme", "model_parallel") or (leaves and not on_card):
        return False
    if num_ranks == 1:
        return backend.max_ranks == 1 or leaves
    return backend.max_ranks is None or backend.max_ranks >= num_ranks


def _lengths(recipe: Recipe) -> list[dict[str, Any]]:
    """Half and a quarter of the rows' length: the first thing to give up where memory is short."""
    most = recipe.data.max_length
    if not isinstance(most, int):  # by the rows' own lengths
        return [{}]
    halves = [most // 2, most // 4]
    return [{}, *({LENGTH: length} for length in halves if length >= _LEAST_LENGTH)]


def _methods(recipe: Recipe) -> list[dict[str, Any]]:
    is_whole = METHODS.get(recipe.adapter.method).trains_base and not recipe.freeze.is_used
    return [{}, {METHOD: "lora"}] if is_whole else [{}]


def _is_possible(recipe: Recipe, changes: Mapping[str, Any]) -> bool:
    """Not refused by the method and backend matrix, and not against a rule of the method."""
    method = METHODS.get(changes.get(METHOD, recipe.adapter.method))
    quantised = bool(changes.get(FOUR_BITS)) or recipe.model.is_quantised
    backend = changes.get(BACKEND, recipe.backend.name)
    if isinstance(cell(method.name, backend, quantised=quantised), Refused):
        return False
    if not works_on(changes.get(OPTIMIZER, recipe.training.optim), backend):
        return False
    recomputes = changes.get(CHECKPOINTING, recipe.training.activation_checkpointing)
    return not (quantised and method.trains_base) and not (method.needs_cache and recomputes)

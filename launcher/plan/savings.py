"""What single changes of a run would save on one card, by the same estimate as `launcher plan`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.adapters.options import METHODS
from launcher.facts import Plan
from launcher.memory.estimate import estimate
from launcher.memory.of_recipe import rows_at_once, setting_of
from launcher.models.shape import ModelShape
from launcher.plan.levers import CHECKPOINTING, CHUNK, FOUR_BITS, MICRO, typed
from launcher.plan.turned import turned
from launcher.recipe.schema import Recipe
from launcher.units import MIB


@dataclass(frozen=True, kw_only=True)
class Saving:
    """A change as typed, and the bytes of a rank's peak that it takes away (estimated)."""

    typed: str
    num_bytes: int


def savings(recipe: Recipe, shape: ModelShape, plan: Plan) -> list[Saving]:
    """The changes that save something, the largest first."""
    now = _peak(recipe, shape, plan, plan.step.micro_batch_size)
    found = []
    for changes in _changes(recipe, plan):
        micro = changes.get(MICRO, plan.step.micro_batch_size)
        others = {key: value for key, value in changes.items() if key != MICRO}
        found.append(
            Saving(typed=typed(changes), num_bytes=now - _peak(turned(recipe, others), shape, plan, micro))
        )
    return sorted((each for each in found if each.num_bytes > 0), key=lambda each: -each.num_bytes)


def _changes(recipe: Recipe, plan: Plan) -> Iterator[Mapping[str, Any]]:
    method = METHODS.get(recipe.adapter.method)
    if plan.step.micro_batch_size > 1:
        yield {MICRO: plan.step.micro_batch_size // 2}
    if not recipe.training.activation_checkpointing and not method.needs_cache:
        yield {CHECKPOINTING: True}
    if recipe.task == "causal_lm" and recipe.training.loss_chunk_bytes is None:
        yield {CHUNK: 256 * MIB}
    if not method.trains_base and not recipe.model.is_quantised:
        yield {FOUR_BITS: True}


def _peak(recipe: Recipe, shape: ModelShape, plan: Plan, micro_batch: int) -> int:
    setting = setting_of(
        recipe,
        shape,
        backend=plan.backend,
        num_ranks=plan.step.num_ranks,
        micro_batch=rows_at_once(recipe.data, micro_batch),
        precision=plan.precision,
        weights_dtype=plan.weights_dtype,
    )
    return estimate(setting).peak_bytes

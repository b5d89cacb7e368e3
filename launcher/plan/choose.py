"""From a recipe, a machine and what was started to a frozen plan. A pure function: no files, no torch."""

import hashlib
import json
from typing import Any

from launcher import __version__
from launcher.errors import LauncherError
from launcher.facts import Derived, Machine, Plan, StepSettings
from launcher.models.shape import ModelShape
from launcher.optim.schedule import scaled_rate
from launcher.plan.micro_batch import micro_batches
from launcher.plan.weights import weights_dtype
from launcher.precision import choose
from launcher.recipe.batch import solve
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes

# Rows that one card holds at once where the recipe leaves it to us and no memory estimate is at hand.
DEFAULT_MICRO_BATCH = 32


def make_plan(
    recipe: Recipe,
    *,
    name: str,
    machine: Machine,
    backend: str,
    num_ranks: int,
    shape: ModelShape | None = None,
) -> Plan:
    """Decide everything that is not the person's to decide, each with its reason.

    With the model's `shape` known, a card's memory decides how many rows it holds at once.
    Raises HardwareError for a precision that the machine lacks, BadValue for a global batch that the
    ranks cannot make.
    """
    precision, precision_reason = choose(recipe.training.precision, machine)
    step, batch_reason = _cut(recipe, machine, backend, num_ranks, shape)
    dtype, dtype_reason = weights_dtype(recipe, precision)
    rate, rate_reason = _rate(recipe)
    derived = (
        Derived(key="precision", value=precision, reason=precision_reason),
        Derived(key="weights", value=dtype, reason=dtype_reason),
        Derived(key="batch", value=step.global_batch_size, reason=batch_reason),
        Derived(key="learning_rate", value=rate, reason=rate_reason),
    )
    return Plan(
        recipe_name=name,
        backend=backend,
        device=machine.device,
        step=step,
        precision=precision,
        weights_dtype=dtype,
        learning_rate=rate,
        fingerprint=fingerprint(recipe, backend, num_ranks, machine.torch_version),
        derived=derived,
    )


def _cut(
    recipe: Recipe, machine: Machine, backend: str, num_ranks: int, shape: ModelShape | None
) -> tuple[StepSettings, str]:
    asked = recipe.training.per_device_train_batch_size
    most, why = (asked, "") if asked != "auto" else _most_rows(recipe, machine, backend, num_ranks, shape)
    step = solve(recipe.training.global_batch_size, most, num_ranks)
    said = f"{step.micro_batch_size} rows x {step.accumulation_steps} accumulation x {num_ranks} rank(s)"
    if asked != "auto" and step.micro_batch_size < asked:
        said += f"; {asked} rows at once do not divide the batch"
    return step, said + why


def _most_rows(
    recipe: Recipe, machine: Machine, backend: str, num_ranks: int, shape: ModelShape | None
) -> tuple[int, str]:
    """Rows that one rank may hold at once, and why: by the card's memory where it can be estimated."""
    solve(recipe.training.global_batch_size, None, num_ranks)  # refused before anything is estimated
    if machine.device != "cuda" or not machine.gpu_memory_bytes:
        return DEFAULT_MICRO_BATCH, ""
    if shape is None:
        return DEFAULT_MICRO_BATCH, f"; at most {DEFAULT_MICRO_BATCH}: no estimate for this model"
    from launcher.plan.prediction import largest_that_fits  # only where there is something to estimate

    sizes = micro_batches(recipe.training.global_batch_size // num_ranks)
    try:
        found = largest_that_fits(recipe, shape, machine, backend=backend, num_ranks=num_ranks, sizes=sizes)
    except LauncherError as error:  # the real model's own layers have the last word
        return DEFAULT_MICRO_BATCH, f"; at most {DEFAULT_MICRO_BATCH}: {error.problems[0].what}"
    card = format_bytes(machine.gpu_memory_bytes)
    if found is None:
        return 1, f"; even one row is estimated to need more than the card's {card}"
    size, prediction = found
    return size, f"; the most that fit: {format_bytes(prediction.needed_bytes)} of {card} estimated"


def _rate(recipe: Recipe) -> tuple[float, str]:
    options = recipe.training
    rate = scaled_rate(
        options.learning_rate,
        global_batch=options.global_batch_size,
        reference=options.lr_reference_batch_size,
        scaling=options.lr_scaling,
    )
    if rate == options.learning_rate:
        return rate, "as in the recipe"
    reference = options.lr_reference_batch_size
    return rate, (
        f"{options.learning_rate:g} at batch {reference}, {options.lr_scaling} scaling "
        f"to {options.global_batch_size}"
    )


def fingerprint(recipe: Recipe, backend: str, num_ranks: int, torch_version: str) -> str:
    """What every rank must agree on: the recipe, the world, the backend and the versions."""
    facts = [recipe.model_dump(mode="json"), backend, num_ranks, __version__, torch_version]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def plan_lines(plan: Plan) -> list[str]:
    """The plan as a person reads it, a line a decision."""
    return [f"{item.key} {_show(item.value)}: {item.reason}" for item in plan.derived]


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

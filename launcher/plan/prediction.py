"""What a run that is about to start will take: the same estimate and time model as `launcher plan`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from launcher.facts import Machine, StepSettings
from launcher.hardware.catalog import find
from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.fits import needed_bytes
from launcher.memory.of_recipe import setting_of
from launcher.memory.setting import Setting
from launcher.models.shape import ModelShape
from launcher.plan.time_model import StepTime, step_time
from launcher.plan.weights import weights_dtype
from launcher.precision import choose
from launcher.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Memory of one rank, and seconds of a step where the card is in the catalogue."""

    setting: Setting
    breakdown: Breakdown
    time: StepTime | None

    @property
    def needed_bytes(self) -> int:
        """With the driver's share and the margin."""
        return needed_bytes(self.breakdown)


def predict(
    recipe: Recipe, shape: ModelShape, machine: Machine, *, backend: str, step: StepSettings
) -> Prediction:
    """Predict one rank of a run that is cut like `step`."""
    precision = choose(recipe.training.precision, machine).name
    setting = setting_of(
        recipe,
        shape,
        backend=backend,
        num_ranks=step.num_ranks,
        micro_batch=step.micro_batch_size,
        precision=precision,
        weights_dtype=weights_dtype(recipe, precision)[0],
    )
    setting = replace(setting, accumulation_steps=step.accumulation_steps)
    gpu = find(machine.gpu_name, machine.gpu_memory_bytes) if machine.device == "cuda" else None
    return Prediction(
        setting=setting,
        breakdown=estimate(setting),
        time=step_time(setting, gpu) if gpu else None,
    )


def largest_that_fits(
    recipe: Recipe,
    shape: ModelShape,
    machine: Machine,
    *,
    backend: str,
    num_ranks: int,
    sizes: Iterable[int],
) -> tuple[int, Prediction] | None:
    """The first of `sizes` (largest first) whose need the card's memory covers; None where none does."""
    rows = recipe.training.global_batch_size // num_ranks
    for size in sizes:
        step = StepSettings(
            global_batch_size=rows * num_ranks,
            micro_batch_size=size,
            accumulation_steps=rows // size,
            num_ranks=num_ranks,
        )
        found = predict(recipe, shape, machine, backend=backend, step=step)
        if found.needed_bytes <= machine.gpu_memory_bytes:
            return size, found
    return None

"""Rules between the card and the numbers that it computes with."""

from collections.abc import Iterator
from dataclasses import replace

from launcher.adapters.options import METHODS
from launcher.errors import Problem, UnknownSetting
from launcher.hardware import catalog
from launcher.recipe.given import Given, Notice, Rule


def gpu_is_known(given: Given) -> Iterator[Problem]:
    """A named card must be in the table of cards."""
    name = given.recipe.hardware.gpu
    if name is None:
        return
    try:
        catalog.get(name)
    except UnknownSetting as error:
        yield from (
            replace(each, where=given.at("hardware.gpu"), what=f"hardware.gpu: {each.what}")
            for each in error.problems
        )


def trained_weights_are_not_half(given: Given) -> Iterator[Problem]:
    """A gradient scaler cannot work on weights that are themselves float16."""
    recipe = given.recipe
    if recipe.model.dtype == "float16" and METHODS.get(recipe.adapter.method).trains_base:
        yield given.problem(
            "model.dtype",
            f"'float16' weights cannot be trained by method {recipe.adapter.method}: gradients underflow",
            "dtype: auto (float32 weights) with precision: fp16; or adapter: lora",
            "dtype: auto",
        )


def emulated_bf16(given: Given) -> Iterator[str]:
    """Volta and Turing have no bf16 units; torch emulates them in silence."""
    gpu, training = given.recipe.hardware.gpu, given.recipe.training
    if gpu is None or catalog.get(gpu).has_bf16:
        return
    card = catalog.get(gpu)
    story = f"training.precision: {card.name} ({card.architecture}) has no bf16 units"
    place = given.at("training.precision")
    if training.precision == "bf16":
        yield f"{place}  {story}: a run on it stops; type precision=auto (fp16), or bf16-emulated (slow)"
    if training.precision == "bf16-emulated":
        yield f"{place}  {story}: emulation is several times slower than fp16"
    if training.tf32 is True:
        yield given.no_effect("training.tf32", f"{card.name} has no TF32")


def half_weights_lose_updates(given: Given) -> Iterator[str]:
    """Trained weights of 8 significant bits do not move by less than 1/512 of themselves."""
    recipe = given.recipe
    if recipe.model.dtype == "bfloat16" and METHODS.get(recipe.adapter.method).trains_base:
        what = "updates below 1/512 of a bfloat16 weight are rounded away, in silence"
        right = "dtype=auto with precision=bf16 keeps fp32 weights for 8 more bytes a trained parameter"
        yield f"{given.at('model.dtype')}  model.dtype: warning: {what}; {right}"


def scale_without_fp16(given: Given) -> Iterator[str]:
    """Only fp16 has a loss scale, and only half precision has modules to keep out of it."""
    training = given.recipe.training
    key, default = "training.min_loss_scale", type(training).model_fields["min_loss_scale"].default
    if training.min_loss_scale != default and training.precision not in ("fp16", "auto"):
        yield given.no_effect(key, f"precision {training.precision} has no loss scale")
    if training.fp32_modules and training.precision == "fp32":
        yield given.no_effect("training.fp32_modules", "precision is fp32")


def card_for_a_cpu(given: Given) -> Iterator[str]:
    """A card is named for a job that must run on the CPU."""
    hardware = given.recipe.hardware
    if hardware.device == "cpu" and hardware.gpu is not None:
        yield given.no_effect("hardware.gpu", "hardware.device is cpu")


PROBLEMS: tuple[Rule, ...] = (
    gpu_is_known,
    trained_weights_are_not_half,
)
NO_EFFECT: tuple[Notice, ...] = (
    emulated_bf16,
    half_weights_lose_updates,
    scale_without_fp16,
    card_for_a_cpu,
)

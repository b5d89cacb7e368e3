"""Rules between the batch, the learning rate and the cards that share them."""

from collections.abc import Iterator
from dataclasses import replace

from launcher.errors import BadValue, Problem
from launcher.recipe.batch import solve
from launcher.recipe.given import Given, Notice, Rule


def scaling_has_a_reference(given: Given) -> Iterator[Problem]:
    """A rate can be scaled only from the batch that it was chosen for."""
    training = given.recipe.training
    if training.lr_scaling != "none" and training.lr_reference_batch_size is None:
        yield given.problem(
            "training.lr_scaling",
            f"'{training.lr_scaling}' has no batch to scale from",
            f"lr_reference_batch_size: the batch for which {training.learning_rate:g} was chosen",
            "lr_reference_batch_size: 8",
        )


def warmup_is_whole_steps(given: Given) -> Iterator[Problem]:
    """Below 1 warm-up is a share, from 1 it counts steps."""
    warmup = given.recipe.training.warmup
    if warmup >= 1 and warmup != int(warmup):
        right = "a share below 1, or a whole number of steps"
        yield given.problem(
            "training.warmup", f"{warmup:g} is neither a share nor a number of steps", right, "warmup: 0.1"
        )


def batch_divides_over_the_cards(given: Given) -> Iterator[Problem]:
    """The global batch must be made exactly by the cards that the recipe names."""
    training, gpus = given.recipe.training, given.recipe.hardware.gpus
    micro = training.per_device_train_batch_size
    try:
        solve(training.global_batch_size, None if micro == "auto" else micro, gpus)
    except BadValue as error:
        yield from (replace(each, where=given.at("training.global_batch_size")) for each in error.problems)


def reference_without_scaling(given: Given) -> Iterator[str]:
    """A reference batch does nothing while the rate is not scaled."""
    training = given.recipe.training
    if training.lr_reference_batch_size is not None and training.lr_scaling == "none":
        yield given.no_effect(
            "training.lr_reference_batch_size", "lr_scaling is none; type lr_scaling=linear or sqrt"
        )


def batch_left_to_the_default(given: Given) -> Iterator[str]:
    """Other tools take the rows of one card for the batch; here the global batch has a default."""
    training = given.recipe.training
    if given.is_given("training.per_device_train_batch_size") and not given.is_given(
        "training.global_batch_size"
    ):
        key = "training.per_device_train_batch_size"
        size = training.global_batch_size
        yield f"{given.at(key)}  {key}: a step has {size} rows over all cards, by default"


def micro_batch_above_the_batch(given: Given) -> Iterator[str]:
    """An upper bound that is never reached."""
    training, gpus = given.recipe.training, given.recipe.hardware.gpus
    micro = training.per_device_train_batch_size
    if micro != "auto" and micro > training.global_batch_size // gpus:
        share = training.global_batch_size // gpus
        yield given.no_effect(
            "training.per_device_train_batch_size", f"a card's share of the batch is {share} rows"
        )


def warmup_that_never_ends(given: Given) -> Iterator[str]:
    """The highest rate is never reached when warm-up is as long as the run."""
    training = given.recipe.training
    if training.max_steps is not None and training.warmup >= 1 and training.warmup >= training.max_steps:
        what = f"{training.warmup:g} steps of {training.max_steps}: the rate is never fully reached"
        yield f"{given.at('training.warmup')}  training.warmup: {what}"


PROBLEMS: tuple[Rule, ...] = (
    scaling_has_a_reference,
    warmup_is_whole_steps,
    batch_divides_over_the_cards,
)
NO_EFFECT: tuple[Notice, ...] = (
    reference_without_scaling,
    batch_left_to_the_default,
    micro_batch_above_the_batch,
    warmup_that_never_ends,
)

"""Rules between the optimizer and the rest of a recipe."""

from collections.abc import Iterator

from launcher.errors import Problem
from launcher.optim.table import OPTIMIZERS, works_on
from launcher.recipe.given import Given, Notice, Rule

_ADAM_KEYS = ("training.adam_beta1", "training.adam_beta2", "training.adam_epsilon")


def optimizer_runs_on_the_backend(given: Given) -> Iterator[Problem]:
    """Some optimizers compute something else on divided tensors: refused, not run."""
    name, backend = given.recipe.training.optim, given.recipe.backend.name
    if works_on(name, backend):
        return
    found = OPTIMIZERS[name]
    others = ", ".join(found.backends or ())
    yield given.problem(
        "training.optim",
        f"'{name}' does not run on {backend}: {found.refusal}",
        f"adamw_torch_fused on {backend}, or {name} on one of: {others}",
        "optim: adamw_torch_fused",
    )


def adam_options_without_adam(given: Given) -> Iterator[str]:
    """Betas and epsilon mean nothing to an optimizer without Adam's moments."""
    name = given.recipe.training.optim
    if name not in ("sgd", "adafactor"):
        return
    for key in _ADAM_KEYS:
        if given.is_given(key):
            yield given.no_effect(key, f"{name} does not use it")


PROBLEMS: tuple[Rule, ...] = (optimizer_runs_on_the_backend,)
NO_EFFECT: tuple[Notice, ...] = (adam_options_without_adam,)

"""Rules between the method, the backend and the weights that they hold."""

from collections.abc import Iterator

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, Upstream, cell
from launcher.errors import Problem
from launcher.recipe.given import Given, Notice, Rule


def backend_takes_the_cards(given: Given) -> Iterator[Problem]:
    """Some backends are for a limited number of processes."""
    backend, gpus = BACKENDS.get(given.recipe.backend.name), given.recipe.hardware.gpus
    if backend.max_ranks is not None and gpus > backend.max_ranks:
        if backend.takes_all_cards:
            what = f"{backend.name} is one process that takes every visible card, hardware.gpus is {gpus}"
            right = "gpus: 1, and the cards in CUDA_VISIBLE_DEVICES"
            yield given.problem("backend.name", what, right, "gpus=1")
            return
        others = [each.name for each in BACKENDS if each.max_ranks is None]
        what = f"{backend.name} runs {backend.max_ranks} process, but hardware.gpus is {gpus}"
        right = f"gpus: {backend.max_ranks}, or one of: {', '.join(others)}"
        yield given.problem("backend.name", what, right, f"backend: {others[0] if others else backend.name}")


def method_runs_on_the_backend(given: Given) -> Iterator[Problem]:
    """A combination that cannot work is refused before anything is downloaded."""
    method, backend = given.recipe.adapter.method, given.recipe.backend.name
    quantised = given.recipe.model.is_quantised
    found = cell(method, backend, quantised=quantised)
    if isinstance(found, Refused):
        key = "backend.name"
        kind = f"{method} over quantised weights" if quantised else f"method {method}"
        what = f"{kind} does not run on {backend}: {found.reason}"
        yield given.problem(
            key,
            what,
            f"{found.alternative}, or another line of `launcher matrix`",
            (f"backend: {found.alternative}"),
        )


def packed_weights_stay_frozen(given: Given) -> Iterator[Problem]:
    """4-bit and 8-bit weights cannot be updated, and are one or the other."""
    model, method = given.recipe.model, given.recipe.adapter.method
    if model.load_in_4bit and model.load_in_8bit:
        what = "true, and model.load_in_4bit too"
        yield given.problem("model.load_in_8bit", what, "one of the two", "load_in_8bit: false")
    if model.is_quantised and METHODS.get(method).trains_base:
        key = "model.load_in_4bit" if model.load_in_4bit else "model.load_in_8bit"
        what = f"method {method} trains the weights, and packed ones cannot be trained"
        yield given.problem(key, what, "an adapter over the packed weights", "adapter: lora")


def cache_methods_keep_activations(given: Given) -> Iterator[Problem]:
    """Recomputing activations turns the key-value cache off, through which a prefix reaches attention."""
    recipe = given.recipe
    method = METHODS.get(recipe.adapter.method)
    if method.needs_cache and recipe.training.activation_checkpointing:
        yield given.problem(
            "training.activation_checkpointing",
            f"method {method.name} reaches attention through the key-value cache, which it turns off",
            f"{method.name} without checkpointing, or p_tuning or lora with it",
            "activation_checkpointing: false, or adapter: p_tuning",
        )


def not_proven_here(given: Given) -> Iterator[str]:
    """A combination that the libraries support and no test here has compared."""
    recipe = given.recipe
    found = cell(recipe.adapter.method, recipe.backend.name, quantised=recipe.model.is_quantised)
    if isinstance(found, Upstream):
        yield f"{given.at('backend.name')}  backend.name: warning: {found.warning}"


PROBLEMS: tuple[Rule, ...] = (
    backend_takes_the_cards,
    method_runs_on_the_backend,
    packed_weights_stay_frozen,
    cache_methods_keep_activations,
)
NO_EFFECT: tuple[Notice, ...] = (not_proven_here,)

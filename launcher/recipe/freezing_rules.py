"""Rules between the `freeze` section and the rest of a recipe."""

from collections.abc import Iterator
from dataclasses import replace

from launcher.adapters.options import METHODS
from launcher.errors import Problem
from launcher.recipe.freezing import MODULES, SCHEDULE, problems
from launcher.recipe.given import Given, Notice, Rule

# Where opening more in the middle of a run has not been compared with one process; the nearest that has.
UNPROVEN = {"zero3_nvme": "zero3_offload", "model_parallel": "zero3_offload"}


def freezing_is_possible(given: Given) -> Iterator[Problem]:
    """Its own values, the method that it belongs to, and backends on which phases are proven."""
    options = given.recipe.freeze
    for key, found in problems(options):
        yield replace(found, where=given.at(key), what=f"{key}: {found.what}")
    if not options.is_used:
        return
    method = given.recipe.adapter.method
    if not METHODS.get(method).trains_base:
        key = SCHEDULE if options.schedule else MODULES
        yield given.problem(
            key,
            f"method {method} freezes the whole model itself and trains what it adds",
            "method full with parts of it frozen, or the adapter without a freeze section",
            "adapter: full",
        )
    backend = given.recipe.backend.name
    if options.schedule and backend in UNPROVEN:
        yield given.problem(
            "backend.name",
            f"opening more of the model in the middle of a run is not proven on {backend}",
            f"{UNPROVEN[backend]}, or freeze.modules without a schedule",
            f"backend: {UNPROVEN[backend]}",
        )


def phases_that_are_not_reached(given: Given) -> Iterator[str]:
    """An epoch of the schedule that lies behind the run's end."""
    training = given.recipe.training
    if training.max_steps is not None:
        return  # epochs are counted when the rows are there
    for epoch in given.recipe.freeze.schedule:
        late = epoch.replace(".", "", 1).isdigit() and float(epoch) >= training.num_train_epochs
        if late:
            key = f"{SCHEDULE}.{epoch}"
            ends = f"the run ends at epoch {training.num_train_epochs:g}"
            yield given.no_effect(key, ends)


PROBLEMS: tuple[Rule, ...] = (freezing_is_possible,)
NO_EFFECT: tuple[Notice, ...] = (phases_that_are_not_reached,)

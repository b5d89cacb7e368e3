"""The recipe as it was started: what the starter, a DeepSpeed JSON and the command line add to it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.backends.compare import flatten, require_agreement, settle, spoken
from launcher.backends.lint import read_ds_file, require_one_checkpointing
from launcher.backends.options import BACKENDS, BackendOptions
from launcher.errors import LaunchMismatch, Problem
from launcher.facts import RunArguments, Starter
from launcher.plan.levers import typed
from launcher.plan.resume_file import resume_changes
from launcher.recipe.load import LoadedRecipe, load_recipe


@dataclass(frozen=True, kw_only=True)
class Started:
    """A loaded recipe and, for a DeepSpeed backend, the JSON to run with (`auto` still in it)."""

    loaded: LoadedRecipe
    backend: str
    name: str
    ds_config: dict[str, Any] | None


def resolve_started(arguments: RunArguments, starter: Starter) -> Started:
    """Load the recipe; take over what only the file or the starter says. Torch-free.

    Raises Conflict, as one table, where a fact was given by hand twice and differently.
    """
    extra = _decided(arguments, starter)
    loaded = load_recipe(arguments.recipe, arguments.overrides, extra=extra)
    found = _found(loaded, starter)
    if found:
        loaded = load_recipe(arguments.recipe, arguments.overrides, extra=extra | found)
    name = arguments.name or loaded.name
    loaded = _as_noted(arguments, loaded, name, extra | found)
    backend = loaded.recipe.backend.name
    _check_ranks(backend, starter)
    return Started(loaded=loaded, backend=backend, name=name, ds_config=_ds_config(loaded, starter))


def _as_noted(
    arguments: RunArguments, loaded: LoadedRecipe, name: str, extra: dict[str, Any]
) -> LoadedRecipe:
    """With what an earlier run of this folder noted for its continuation."""
    recipe = loaded.recipe
    if recipe.training.resume_from_checkpoint is None:
        return loaded
    changes, reason = resume_changes(Path(recipe.output_dir).expanduser() / name, loaded)
    if not changes:
        return loaded
    again = load_recipe(arguments.recipe, arguments.overrides, extra=extra | changes)
    said = f"resume.json ({reason}): {typed(changes)}"
    return replace(again, notices=(*again.notices, said))


def _decided(arguments: RunArguments, starter: Starter) -> dict[str, Any]:
    extra: dict[str, Any] = {"hardware.gpus": starter.world_size}
    if starter.backend is not None:
        extra["backend.name"] = starter.backend
    if arguments.output_dir is not None:
        extra["output_dir"] = arguments.output_dir
    if arguments.resume is not None:
        extra["training.resume_from_checkpoint"] = arguments.resume
    return extra


def _found(loaded: LoadedRecipe, starter: Starter) -> dict[str, Any]:
    """Facts that only the starter's files give, after asserting that nobody contradicts them."""
    found: dict[str, Any] = {}
    if starter.config_file is not None:
        config = read_ds_file(Path(starter.config_file)).config
        if not _is_shipped(config, loaded.recipe.backend):
            found |= settle(
                starter.config_file,
                config,
                recipe=loaded.recipe,
                origins=loaded.origins,
                num_ranks=starter.world_size,
            )
    if by_hand := _by_accelerate(starter):
        found |= _settled_with_accelerate(loaded, by_hand)
    return found


def _by_accelerate(starter: Starter) -> dict[str, Any]:
    asked = starter.mixed_precision
    return starter.settings | ({} if asked is None else {"training.precision": asked})


def _settled_with_accelerate(loaded: LoadedRecipe, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Accelerate's facts, after asserting that neither recipe nor command line contradicts them."""
    values = flatten(loaded.recipe.model_dump())
    by_recipe = spoken(values, loaded.origins, "recipe", "parent")
    by_command = spoken(values, loaded.origins, "command line")
    file = "accelerate launch and its configuration"
    key = "training.activation_checkpointing"
    by_hand = bool((by_recipe | by_command).get(key))
    require_one_checkpointing(file=file, by_file=bool(facts.get(key)), by_recipe=by_hand)
    require_agreement(file=file, file_facts=facts, recipe=by_recipe, command_line=by_command)
    return dict(facts)


def _check_ranks(backend: str, starter: Starter) -> None:
    most = BACKENDS.get(backend).max_ranks
    if most is not None and starter.world_size > most:
        raise LaunchMismatch(
            Problem(
                where="backend.name",
                what=f"{starter.world_size} processes were started, {backend} takes {most}",
                right="multi_gpu or zero2 for several processes",
                type="--backend multi_gpu",
            )
        )


def _ds_config(loaded: LoadedRecipe, starter: Starter) -> dict[str, Any] | None:
    """The starter's JSON; a shipped one stands for its backend, whose options a person may set."""
    options = loaded.recipe.backend
    render = BACKENDS.get(options.name).ds_config
    if render is None:
        return None
    if starter.config_file is None:
        return render(options)
    config = read_ds_file(Path(starter.config_file)).config
    return render(options) if _is_shipped(config, options) else config


def _is_shipped(config: Mapping[str, Any], options: BackendOptions) -> bool:
    backend = BACKENDS.get(options.name)
    return backend.ds_config is not None and config == backend.ds_config(backend.options(name=options.name))

"""From a recipe, a backend and a pretend machine to concrete files and the lines that start them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.backends.options import BACKENDS, Backend
from launcher.backends.render import json_text, yaml_text
from launcher.backends.zero import resolve
from launcher.facts import Plan
from launcher.hardware.catalog import get
from launcher.hardware.peer import lacks_peers, peer_variables
from launcher.plan.choose import make_plan
from launcher.plan.known_shape import known_shape
from launcher.plan.pretend import pretend_machine
from launcher.plan.resolved import recipe_text, resolved
from launcher.plan.start_lines import Compilation, lines_text, start_lines, typed_path
from launcher.plan.trainer import trainer_text
from launcher.recipe.load import LoadedRecipe, load_recipe
from launcher.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a person asked for; None where the recipe decides. `to`: `launcher` or `trainer`."""

    recipe: str
    out: Path
    backend: str | None = None
    gpus: int | None = None
    gpu: str | None = None
    to: str = "launcher"
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """File name to text, the command lines in the order of preference, the plan and what to tell."""

    files: dict[str, str]
    commands: tuple[str, ...]
    plan: Plan
    notices: tuple[str, ...]


def compile_recipe(wanted: Wanted) -> Compiled:
    """Decide everything for the pretend machine. Raises LauncherError; nothing is written."""
    loaded = _load(wanted)
    recipe = loaded.recipe
    num_ranks = recipe.hardware.gpus
    gpu = None if recipe.hardware.device == "cpu" else recipe.hardware.gpu
    machine = pretend_machine(gpu, num_ranks)
    backend = BACKENDS.get(recipe.backend.name)
    plan = make_plan(
        recipe,
        name=loaded.name,
        machine=machine,
        backend=backend.name,
        num_ranks=num_ranks,
        shape=known_shape(recipe),
    )
    concrete = resolved(recipe, plan, machine)
    ds_config = _ds_config(backend, concrete, plan)
    files = {"recipe.yaml": recipe_text(concrete)}
    if wanted.to == "trainer":
        files = {"training_arguments.py": trainer_text(concrete, plan, _ds_path(wanted, ds_config))}
    files["accelerate.yaml"] = yaml_text(_accelerate_config(backend, concrete, plan, wanted.out))
    if ds_config is not None:
        files["ds.json"] = json_text(ds_config)
    several_without_peers = gpu is not None and num_ranks > 1 and lacks_peers(get(gpu))
    commands = start_lines(
        Compilation(
            out=wanted.out,
            name=loaded.name,
            num_ranks=num_ranks,
            has_json=ds_config is not None,
            keeps_trainer=wanted.to == "trainer",
            variables=peer_variables([several_without_peers], {}),
        )
    )
    files["command.txt"] = lines_text(commands)
    notices = [*loaded.notices, *([] if gpu else ["no card is named: compiled for a CPU; --gpu NAME"])]
    if wanted.to == "trainer" and recipe.freeze.is_used:
        notices.append("freeze is not in TrainingArguments: the Trainer trains what your script leaves open")
    return Compiled(files=files, commands=commands, plan=plan, notices=tuple(notices))


def _load(wanted: Wanted) -> LoadedRecipe:
    asked = {"backend.name": wanted.backend, "hardware.gpus": wanted.gpus, "hardware.gpu": wanted.gpu}
    if wanted.gpu is not None:
        asked["hardware.device"] = "cuda"
    if wanted.backend is not None:
        BACKENDS.get(wanted.backend, "--backend")
    given = {key: value for key, value in asked.items() if value is not None}
    return load_recipe(wanted.recipe, wanted.overrides, extra=given)


def _ds_config(backend: Backend, recipe: Recipe, plan: Plan) -> dict[str, Any] | None:
    if backend.ds_config is None:
        return None
    return resolve(
        backend.ds_config(recipe.backend),
        step=plan.step,
        precision=plan.precision,
        max_grad_norm=recipe.training.max_grad_norm,
    )


def _ds_path(wanted: Wanted, ds_config: dict[str, Any] | None) -> str | None:
    return None if ds_config is None else typed_path(wanted.out / "ds.json")


def _accelerate_config(backend: Backend, recipe: Recipe, plan: Plan, out: Path) -> dict[str, Any]:
    """The backend's YAML with this JSON's place and this recipe's blocks in it."""
    config = backend.accelerate_config(plan.step.num_ranks)
    if "deepspeed_config" in config:
        place = typed_path(out / "ds.json")
        config["deepspeed_config"] = config["deepspeed_config"] | {"deepspeed_config_file": place}
    if "fsdp_config" in config:
        config["fsdp_config"] = config["fsdp_config"] | fsdp_settings(recipe.backend.model_dump())
    return config


def fsdp_settings(options: dict[str, Any]) -> dict[str, Any]:
    """FSDP options in Accelerate's words; several wrap classes are one text with commas there."""
    found: dict[str, Any] = {"fsdp_reshard_after_forward": options["reshard_after_forward"]}
    if options["wrap_classes"]:
        found["fsdp_transformer_layer_cls_to_wrap"] = ",".join(options["wrap_classes"])
    return found

"""From a recipe, a backend and a pretend machine to concrete files and the lines that start them."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import launcher
from launcher.backends.options import BACKENDS, Backend
from launcher.backends.render import json_text, yaml_text
from launcher.backends.zero import resolve
from launcher.errors import BadValue, Problem
from launcher.facts import Plan
from launcher.hardware.catalog import get
from launcher.hardware.peer import lacks_peers, peer_variables
from launcher.plan.choose import make_plan
from launcher.plan.pretend import pretend_machine
from launcher.plan.resolved import recipe_text, resolved
from launcher.plan.trainer import trainer_text
from launcher.plan.write import write_file
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
    plan = make_plan(recipe, name=loaded.name, machine=machine, backend=backend.name, num_ranks=num_ranks)
    concrete = resolved(recipe, plan, machine)
    ds_config = _ds_config(backend, concrete, plan)
    files = {"recipe.yaml": recipe_text(concrete)}
    if wanted.to == "trainer":
        files = {"training_arguments.py": trainer_text(concrete, plan, _ds_path(wanted, ds_config))}
    files["accelerate.yaml"] = yaml_text(_accelerate_config(backend, concrete, plan, wanted.out))
    if ds_config is not None:
        files["ds.json"] = json_text(ds_config)
    commands = _commands(wanted, loaded.name, num_ranks, gpu, has_json=ds_config is not None)
    files["command.txt"] = _command_text(commands)
    notices = (*loaded.notices, *([] if gpu else ["no card is named: compiled for a CPU; --gpu NAME"]))
    return Compiled(files=files, commands=commands, plan=plan, notices=notices)


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


def root() -> Path:
    """The clone's root: where commands are meant to be typed."""
    return Path(launcher.__file__).resolve().parents[1]


def typed_path(path: Path) -> str:
    """As typed from the clone's root for what lies inside it, absolute otherwise."""
    whole = path.expanduser().absolute()
    return whole.relative_to(root()).as_posix() if whole.is_relative_to(root()) else str(whole)


def _commands(
    wanted: Wanted, name: str, num_ranks: int, gpu: str | None, *, has_json: bool
) -> tuple[str, ...]:
    """Accelerate's line, and DeepSpeed's where there is a JSON for it."""
    out = wanted.out
    script = "train.py" if wanted.to == "trainer" else "launcher/run.py"
    words = [] if wanted.to == "trainer" else ["--recipe", typed_path(out / "recipe.yaml"), "--name", name]
    heads = [["accelerate", "launch", "--config_file", typed_path(out / "accelerate.yaml"), script]]
    if has_json:
        ds = [] if wanted.to == "trainer" else ["--ds", typed_path(out / "ds.json")]
        heads.append(["deepspeed", "--num_gpus", str(num_ranks), script, *ds])
    several_without_peers = gpu is not None and num_ranks > 1 and lacks_peers(get(gpu))
    variables = [f"{key}={value}" for key, value in peer_variables([several_without_peers], {}).items()]
    return tuple(" ".join([*variables, shlex.join([*head, *words])]) for head in heads)


def _command_text(commands: Sequence[str]) -> str:
    return f"# one of these, from {root()}\n" + "\n".join(commands) + "\n"


def write_compiled(out: Path, files: dict[str, str], *, force: bool) -> list[tuple[Path, str]]:
    """Write the files; each with `written` or `unchanged`.

    Raises BadValue where a file is there with other content, unless `force`.
    """
    places = {out / name: text for name, text in files.items()}
    differ = [path for path, text in places.items() if path.exists() and _content(path) != text]
    if differ and not force:
        names = ", ".join(path.name for path in differ)
        raise BadValue(
            Problem(
                where=f"--out {out}",
                what=f"{names} there differ from what would be written",
                right="another folder, or --force to write over them",
                type="--force",
            )
        )
    out.mkdir(parents=True, exist_ok=True)
    told = []
    for path, text in places.items():
        same = path.exists() and path not in differ
        told.append((path, "unchanged" if same else "written"))
        if not same:
            write_file(path, text)
    return told


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None

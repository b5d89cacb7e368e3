"""Who started this process: read from the environment that each starter leaves, before torch.

The starter owns the number of processes and the backend. What accelerate 1.15, torchrun and
deepspeed 0.19 export is told apart here and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.backends.accelerate_file import zero_name
from launcher.backends.choose import settle_backend
from launcher.backends.compare import Given, table
from launcher.backends.lint import read_ds_file, require_fsdp2, unknown_ds_fields
from launcher.backends.options import BACKENDS
from launcher.errors import BadValue, Conflict, Problem, UnknownSetting
from launcher.facts import RunArguments, Starter
from launcher.process.config_files import find_config
from launcher.recipe.load import load_recipe

_NOTHING_TYPED = RunArguments(recipe="")


def read_starter(environ: Mapping[str, str], arguments: RunArguments = _NOTHING_TYPED) -> Starter:
    """The starter with its backend; None where the recipe may still choose.

    Raises RecipeError for an unknown backend, an unusable JSON, or two that contradict each other.
    """
    name = _name(environ)
    world_size = _number(environ, "WORLD_SIZE", 1)
    config_file = _config_file(environ, arguments)
    return Starter(
        name=name,
        rank=_number(environ, "RANK", 0),
        local_rank=_number(environ, "LOCAL_RANK", 0),
        world_size=world_size,
        local_world_size=_number(environ, "LOCAL_WORLD_SIZE", _number(environ, "LOCAL_SIZE", world_size)),
        backend=_backend(environ, arguments, config_file, name, world_size),
        config_file=str(config_file) if config_file else None,
        mixed_precision=_mixed_precision(environ),
        settings=_fsdp_settings(environ) | _zero_settings(environ, config_file),
    )


def settled(arguments: RunArguments, starter: Starter) -> Starter:
    """The starter with the backend it decides after all, once the recipe's is known; else unchanged."""
    if starter.backend is not None:
        return starter
    wanted = load_recipe(arguments.recipe, arguments.overrides).recipe.backend.name
    backend = settle_backend(starter, wanted)
    return starter if backend == wanted else replace(starter, backend=backend)


def _name(environ: Mapping[str, str]) -> str:
    """Accelerate starts torchrun inside itself, so it is asked first."""
    if "ACCELERATE_MIXED_PRECISION" in environ:
        return "accelerate"
    if "TORCHELASTIC_RUN_ID" in environ:
        return "torchrun"
    return "deepspeed" if "CROSS_RANK" in environ else "python"


def _number(environ: Mapping[str, str], key: str, default: int) -> int:
    text = environ.get(key, "")
    if not text:
        return default
    if text.isdigit():
        return int(text)
    raise BadValue(
        Problem(where=key, what=f"the variable is '{text}'", right="a whole number", type=f"unset {key}")
    )


def _mixed_precision(environ: Mapping[str, str]) -> str | None:
    """Accelerate exports `no` when told "no" and when told nothing: it means unstated."""
    asked = environ.get("ACCELERATE_MIXED_PRECISION", "no")
    return None if asked == "no" else asked


def _config_file(environ: Mapping[str, str], arguments: RunArguments) -> Path | None:
    """The DeepSpeed JSON: `--ds`, or the one in the starter's own configuration; not two of them."""
    typed = find_config(arguments.ds) if arguments.ds else None
    named = environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "") if _uses(environ, "DEEPSPEED") else ""
    found = find_config(named) if named not in ("", "none", "None") else None
    if typed and found and typed.is_file() and found.is_file() and typed.read_bytes() != found.read_bytes():
        raise _contradiction("DeepSpeed JSON", starter=found, file=None, command_line=typed)
    return typed or found


def _uses(environ: Mapping[str, str], plugin: str) -> bool:
    return _is_true(environ, f"ACCELERATE_USE_{plugin}")


def _is_true(environ: Mapping[str, str], key: str) -> bool:
    return environ.get(key, "").lower() in ("true", "1", "yes")


def _backend(
    environ: Mapping[str, str], arguments: RunArguments, config_file: Path | None, name: str, world_size: int
) -> str | None:
    started = _started_backend(environ, config_file)
    by_file = read_ds_file(config_file).backend if config_file else None
    known = [
        BACKENDS.get(found, where).name for found, where in _named(arguments, by_file, started, config_file)
    ]
    if len(set(known)) > 1:
        raise _contradiction("backend", starter=started, file=by_file, command_line=arguments.backend)
    if known:
        _require_ranks(known[0], environ, name, world_size)
        return known[0]
    if world_size > 1:
        return None if name == "deepspeed" else "multi_gpu"
    return None if name in ("python", "deepspeed") else "single_gpu"


def _named(
    arguments: RunArguments, by_file: str | None, started: str | None, config_file: Path | None
) -> list[tuple[str, str]]:
    """The backends that somebody named, each with the place for a message."""
    named = [
        (arguments.backend, "--backend"),
        (by_file, str(config_file)),
        (started, "the starter's environment"),
    ]
    return [(found, where) for found, where in named if found is not None]


def _started_backend(environ: Mapping[str, str], config_file: Path | None) -> str | None:
    """What accelerate's configuration asked for by itself; a JSON speaks through its own stage."""
    if _uses(environ, "FSDP"):
        require_fsdp2(environ.get("FSDP_VERSION", "1"), "fsdp_config in accelerate's YAML")
        return "fsdp2_offload" if _is_true(environ, "FSDP_OFFLOAD_PARAMS") else "fsdp2"
    if not _uses(environ, "DEEPSPEED"):
        return None
    _refuse_unknown_fields(environ)
    if config_file:
        return None
    devices = [environ.get(f"ACCELERATE_DEEPSPEED_OFFLOAD_{what}_DEVICE") for what in ("OPTIMIZER", "PARAM")]
    return zero_name(environ.get("ACCELERATE_DEEPSPEED_ZERO_STAGE", "2"), devices)


def _fsdp_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """What an FSDP configuration says about things that the recipe owns; accelerate exports the rest too."""
    if not _uses(environ, "FSDP"):
        return {}
    found: dict[str, Any] = {}
    names = [name.strip() for name in environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "").split(",")]
    if any(names):
        found["backend.wrap_classes"] = tuple(name for name in names if name)
    if _is_true(environ, "FSDP_ACTIVATION_CHECKPOINTING"):
        found["training.activation_checkpointing"] = True
    return found


def _zero_settings(environ: Mapping[str, str], config_file: Path | None) -> dict[str, Any]:
    """What the flat keys of a deepspeed_config block say about the recipe's facts."""
    clipping = environ.get("ACCELERATE_GRADIENT_CLIPPING", "")
    if config_file or not _uses(environ, "DEEPSPEED") or clipping in ("", "none", "None", "auto"):
        return {}
    return {"training.max_grad_norm": float(clipping)}


def _refuse_unknown_fields(environ: Mapping[str, str]) -> None:
    """Accelerate accepts misspelt keys of its deepspeed_config block without a word."""
    fields = environ.get("ACCELERATE_CONFIG_DS_FIELDS", "").split(",")
    if problems := unknown_ds_fields(fields, "deepspeed_config in accelerate's YAML"):
        raise UnknownSetting(problems)


def _require_ranks(backend: str, environ: Mapping[str, str], name: str, world_size: int) -> None:
    piece = BACKENDS.get(backend)
    if piece.max_ranks is not None and world_size > piece.max_ranks:
        raise _wrong_ranks(backend, name, world_size, f"at most {piece.max_ranks}", "--backend multi_gpu")
    if backend == "multi_gpu" and world_size == 1 and "RANK" not in environ:
        again = "launcher run RECIPE --backend multi_gpu --gpus 2"
        raise _wrong_ranks(backend, name, world_size, "one for every card, started together", again)


def _wrong_ranks(backend: str, name: str, world_size: int, right: str, again: str) -> Conflict:
    return Conflict(
        Problem(
            where="--backend",
            what=f"{backend} was asked for, and {name} started {world_size} process{'es' * (world_size > 1)}",
            right=f"{backend} takes {right}",
            type=again,
        )
    )


def _contradiction(key: str, *, starter: object, file: object, command_line: object) -> Conflict:
    row = Given(key=key, recipe=starter, file=file, command_line=command_line)
    return Conflict(
        Problem(
            what="the same fact was given twice by hand, and differently:\n"
            + table([row], ("key", "starter", "file", "command line")),
            right="the starter owns the backend: one of the values above, said once",
            type="the same command with only one of them",
        )
    )

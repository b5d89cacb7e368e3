"""What a run folder holds before training starts: recipe, plan, configuration, command, environment."""

import importlib.metadata
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher import __version__
from launcher.backends.options import BACKENDS
from launcher.backends.render import json_text, yaml_text
from launcher.facts import Machine, Plan, Starter
from launcher.plan.run_id import KEY, run_id
from launcher.recipe.dump import to_yaml
from launcher.recipe.schema import Recipe
from launcher.redact import redact, redacted_data, redacted_value

# Set by `launcher run`: the line that was typed, and the starter's line that it became.
COMMAND_VARIABLE = "LAUNCHER_COMMAND"
PACKAGES = ("torch", "transformers", "accelerate", "deepspeed", "peft", "datasets", "bitsandbytes", "numpy")
_KEPT = (
    "CUDA",
    "NCCL",
    "GLOO",
    "TORCH",
    "HF_",
    "ACCELERATE",
    "FSDP",
    "DS_",
    "OMP",
    "MASTER",
    "RANK",
    "WORLD",
    "LOCAL",
)


def run_files(
    recipe: Recipe, plan: Plan, machine: Machine, starter: Starter, ds_config: dict[str, Any] | None
) -> dict[str, str]:
    """File name to text: what was run, how it was started, on what."""
    backend = BACKENDS.get(plan.backend)
    files = {
        "recipe.yaml": to_yaml(recipe),
        "plan.json": json_text(plan.to_dict()),
        "accelerate.yaml": yaml_text(backend.accelerate_config(plan.step.num_ranks)),
        "command.txt": redact(os.environ.get(COMMAND_VARIABLE, shlex.join(sys.argv))) + "\n",
        "environment.json": json_text(environment(machine, starter, os.environ)),
    }
    return files if ds_config is None else files | {"ds.json": json_text(ds_config)}


def environment(machine: Machine, starter: Starter, variables: Mapping[str, str]) -> dict[str, Any]:
    """Versions, hardware and the variables that steer the stack; secrets are named, not shown."""
    return {
        "launcher": __version__,
        KEY: run_id(variables),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": vars(machine) | {"compute_capability": list(machine.compute_capability)},
        "starter": redacted_data(vars(starter)),
        "variables": {
            name: redacted_value(name, value)
            for name, value in sorted(variables.items())
            if name.startswith(_KEPT)
        },
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def write_file(path: Path, content: str) -> None:
    """Write a file whole or not at all; secrets that this process knows of are taken out."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(redact(content), encoding="utf-8")
    temporary.replace(path)

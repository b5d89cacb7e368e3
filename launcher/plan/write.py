"""What a run folder holds before training starts: recipe, plan, configuration, command, environment."""

import importlib.metadata
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher import __version__
from launcher.backends.options import BACKENDS
from launcher.backends.render import json_text, yaml_text
from launcher.facts import Machine, Plan, Starter
from launcher.recipe.dump import to_yaml
from launcher.recipe.schema import Recipe

# Set by `launcher run`: the line that was typed, and the starter's line that it became.
COMMAND_VARIABLE = "LAUNCHER_COMMAND"
PACKAGES = ("torch", "transformers", "accelerate", "deepspeed", "peft", "datasets", "bitsandbytes", "numpy")
_SECRET = re.compile(
    r"token|secret|password|passwd|api_?key|credential|proxy|autodl.*(url|panel)", re.IGNORECASE
)
_IN_URL = re.compile(r"(\w+://)[^/\s@]+@")
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
        "command.txt": os.environ.get(COMMAND_VARIABLE, shlex.join(sys.argv)) + "\n",
        "environment.json": json_text(environment(machine, starter, os.environ)),
    }
    return files if ds_config is None else files | {"ds.json": json_text(ds_config)}


def environment(machine: Machine, starter: Starter, variables: Mapping[str, str]) -> dict[str, Any]:
    """Versions, hardware and the variables that steer the stack; secrets are named, not shown."""
    return {
        "launcher": __version__,
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": vars(machine) | {"compute_capability": list(machine.compute_capability)},
        "starter": vars(starter),
        "variables": {
            name: redacted(name, value) for name, value in sorted(variables.items()) if name.startswith(_KEPT)
        },
    }


def redacted(name: str, value: str) -> str:
    """The value, or a placeholder where name or content may hold a secret."""
    return "(redacted)" if _SECRET.search(name) else _IN_URL.sub(r"\1(redacted)@", value)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def write_file(path: Path, content: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(content, encoding="utf-8")
    temporary.replace(path)

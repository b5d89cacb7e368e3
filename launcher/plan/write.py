"""What a run folder holds before training starts: recipe, plan, configuration, command, environment."""

import importlib.metadata
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher import __version__
from launcher.facts import Machine, Plan, Starter
from launcher.recipe.dump import to_yaml
from launcher.recipe.schema import Recipe

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
    recipe: Recipe, plan: Plan, machine: Machine, starter: Starter, argv: list[str]
) -> dict[str, str | dict[str, Any]]:
    """File name to content: text as it is, dictionaries to be written as JSON."""
    return {
        "recipe.yaml": to_yaml(recipe),
        "plan.json": plan.to_dict(),
        "command.txt": shlex.join(argv) + "\n",
        "environment.json": environment(machine, starter, os.environ),
    }


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

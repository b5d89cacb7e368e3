"""Which tool a configuration file is for, by its top-level keys; and why a text is no JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.errors import Problem

_ACCELERATE = frozenset(["distributed_type", "compute_environment", "deepspeed_config", "fsdp_config"])
_DEEPSPEED = frozenset(
    [
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "zero_allow_untested_optimizer",
        "steps_per_print",
    ]
)
_RECIPE = frozenset(["extends", "task", "training"])


_WRAPPED = frozenset({"deepspeed_config"})


def kind_of(config: Mapping[str, Any]) -> str:
    """`accelerate`, `deepspeed`, `recipe`, or nothing."""
    keys = {str(key) for key in config}
    if keys & _WRAPPED and not keys & {"distributed_type", "compute_environment"}:
        inner = next(config[key] for key in config if str(key) in _WRAPPED)
        if isinstance(inner, Mapping) and {*map(str, inner)} & _DEEPSPEED:
            return "deepspeed"  # one level too deep
    for kind, signs in (("accelerate", _ACCELERATE), ("deepspeed", _DEEPSPEED), ("recipe", _RECIPE)):
        if keys & signs:
            return kind
    return ""


def meant_for(kind: str, path: Path, wanted: str) -> Problem | None:
    """The finding about a file of `kind` that was given where a file of `wanted` belongs."""
    says = {
        "accelerate": ("an Accelerate YAML", f"--config_file {path}"),
        "deepspeed": ("a DeepSpeed JSON", f"--ds {path}"),
        "recipe": ("a recipe", f"launcher check {path}"),
    }
    if kind == wanted or kind not in says:
        return None
    name, typed = says[kind]
    option = (
        "--ds takes a DeepSpeed JSON" if wanted == "deepspeed" else "--config_file takes an Accelerate YAML"
    )
    return Problem(where=str(path), what=f"this is {name}", right=option, type=typed)


def why_no_json(text: str, position: int) -> tuple[str, str]:
    """What stands at a place where a JSON parser stopped, and what to do; the first is empty if unknown."""
    rest, before = text[position:].lstrip(), text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        return "a comment", "no comments: JSON has none"
    if rest[:1] in "}]" and before.endswith(",") or (rest[:1] == "," and rest[1:].lstrip()[:1] in "}]"):
        return "a comma before the closing bracket", "no comma behind the last value"
    if rest.startswith("'"):
        return "single quotes", 'double quotes: "key": "value"'
    if rest.startswith(("True", "False", "None")):
        return "a word of Python", "true, false or null"
    if not rest:
        return "the text ends too early", "a closing bracket for each one that opens"
    if rest.startswith('"') and not before.endswith((",", "{", "[", ":")):
        return "no comma before this", "a comma between two values"
    return "", ""

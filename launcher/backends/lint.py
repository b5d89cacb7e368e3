"""Read a person's DeepSpeed JSON or Accelerate YAML and say what its own parser would not.

Unknown, misplaced and removed keys are errors that name the right place; a file name that
contradicts the stage inside is a warning. The effective stage is always stated.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from launcher.backends import accelerate_values, ds_values
from launcher.backends.file_keys import (
    ACCELERATE_BLOCKS,
    DS_BLOCKS,
    DS_OTHER_NAMES,
    DS_REMOVED,
    DS_WATCHING_BLOCKS,
)
from launcher.backends.file_kind import kind_of, meant_for
from launcher.backends.file_text import first_line, parse_json, read_text, unreadable
from launcher.errors import BadValue, Conflict, Problem, UnknownSetting
from launcher.registry import nearest

_DS_ALL = DS_BLOCKS | DS_WATCHING_BLOCKS


@dataclass(frozen=True, kw_only=True)
class DsFile:
    """A DeepSpeed JSON that passed: its content, its effective stage, the backend it stands for."""

    path: Path
    config: dict[str, Any] = field(hash=False)
    stage: int
    backend: str
    notices: tuple[str, ...]


def read_ds_file(path: Path) -> DsFile:
    """The file as a DsFile. Raises RecipeError carrying every problem found in it."""
    text = read_text(path, wanted="a DeepSpeed JSON, as in ds_configs/")
    config = parse_json(path, text)
    if other := meant_for(kind_of(config), path, "deepspeed"):
        raise BadValue(other)
    place = partial(_place, path, text)
    config, quoted = ds_values.without_quotes(config)
    problems = [*_wrong_keys(path, text, config, "", _DS_ALL), *ds_values.wrong_values(config, place)]
    if problems:
        raise UnknownSetting(problems)
    stage = ds_stage(config, str(path))
    backend = _backend_name(config, stage, str(path))
    if problems := [*ds_values.contradictions(config, stage, place)]:
        raise BadValue(problems)
    notices = (
        f"{path}: ZeRO stage {stage}, backend {backend}",
        *name_against_stage(path, stage),
        *_name_against_offload(path, backend),
        *_without_effect(path, config),
        *(f"warning: {path.name}: {said}" for said in (*quoted, *ds_values.without_effect(config, stage))),
    )
    return DsFile(path=path, config=config, stage=stage, backend=backend, notices=notices)


def read_accelerate_file(path: Path) -> dict[str, Any]:
    """An Accelerate YAML as plain types. Raises RecipeError carrying every problem found in it."""
    text = read_text(path, wanted="an Accelerate YAML, as in accelerate_configs/")
    try:
        config = YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise unreadable(f"{path}:{line}", "is not YAML", str(error.problem)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise unreadable(str(path), "is not YAML", first_line(error)) from error
    if not isinstance(config, dict):
        raise unreadable(str(path), "is not a mapping", "key: value lines are needed")
    if other := meant_for(kind_of(config), path, "accelerate"):
        raise BadValue(other)
    problems = [*_wrong_keys(path, text, config, "", ACCELERATE_BLOCKS), *_flat_beside_file(path, config)]
    problems += accelerate_values.wrong_values(config, partial(_place, path, text))
    if problems:
        raise UnknownSetting(problems)
    if isinstance(block := config.get("fsdp_config"), Mapping) and block:  # `accelerate config` writes {}
        require_fsdp2(block.get("fsdp_version", 1), _place(path, text, "fsdp_config"))
    return config


def require_fsdp2(version: Any, where: str) -> None:
    """Raise BadValue for FSDP's first version, which is Accelerate's default.

    It keeps whole gradients for frozen weights, or refuses them beside trainable ones.
    """
    if str(version) != "2":
        raise BadValue(
            Problem(
                where=where,
                what=f"fsdp_version is {version}, which is not offered here",
                right="fsdp_version: 2, written out: without it Accelerate takes 1",
                type="fsdp_version: 2",
            )
        )


def require_one_checkpointing(*, file: str, by_file: bool, by_recipe: bool) -> None:
    """Raise Conflict where FSDP's file and the recipe both ask to recompute activations."""
    if by_file and by_recipe:
        raise Conflict(
            Problem(
                where=file,
                what="fsdp_activation_checkpointing and training.activation_checkpointing are both on: "
                "blocks would be recomputed twice",
                right="one of the two; the recipe owns it",
                type="fsdp_activation_checkpointing: false",
            )
        )


def ds_stage(config: Mapping[str, Any], where: str) -> int:
    """The stage that DeepSpeed will use. Raises BadValue for one that is not 1, 2 or 3."""
    zero = config.get("zero_optimization") or {}
    stage = int(zero) if isinstance(zero, bool) else zero.get("stage", 0)
    if isinstance(stage, str) and stage.isdigit():
        stage = int(stage)
    if isinstance(stage, bool) or stage not in (1, 2, 3):
        raise BadValue(
            Problem(
                where=f"{where}: zero_optimization.stage",
                what=f"the stage is {stage!r}, which divides nothing",
                right="1 (states), 2 (and gradients) or 3 (and parameters); without ZeRO: multi_gpu",
                type='"zero_optimization": {"stage": 2}',
            )
        )
    return int(stage)


def unknown_ds_fields(fields: list[str], where: str) -> list[Problem]:
    """Keys of a `deepspeed_config` block that Accelerate accepts without knowing them."""
    known = ACCELERATE_BLOCKS["deepspeed_config"] | {"mixed_precision"}
    return [_unknown(where, name, known) for name in fields if name and name not in known]


def _wrong_keys(
    path: Path, text: str, config: Mapping[str, Any], block: str, blocks: Mapping[str, frozenset[str]]
) -> Iterator[Problem]:
    known = blocks[block]
    for key, value in config.items():
        inner = f"{block}.{key}" if block else str(key)
        if str(key) not in known:
            yield _explain(_place(path, text, str(key)), str(key), block, inner, blocks)
        elif inner in blocks and isinstance(value, Mapping):
            yield from _wrong_keys(path, text, value, inner, blocks)
        elif inner in blocks and not _is_accepted_scalar(inner, value):
            yield _not_a_block(_place(path, text, str(key)), inner, value)


def _is_accepted_scalar(block: str, value: Any) -> bool:
    return value is None or (block == "zero_optimization" and isinstance(value, bool))


def _place(path: Path, text: str, key: str) -> str:
    """`file:line` of the first line that has the key."""
    pattern = re.compile(rf"""(^|[\s{{,"']){re.escape(key)}["']?\s*:""")
    for number, line in enumerate(text.splitlines(), start=1):
        if pattern.search(line):
            return f"{path}:{number}"
    return str(path)


def _explain(where: str, key: str, block: str, inner: str, blocks: Mapping[str, frozenset[str]]) -> Problem:
    if blocks is _DS_ALL and inner in DS_REMOVED:
        return Problem(
            where=where,
            what=f"{inner} was removed from DeepSpeed",
            right=DS_REMOVED[inner],
            type=f"remove {key}",
        )
    if (homes := [name for name, keys in blocks.items() if key in keys and name != block]) and len(homes) < 3:
        return _misplaced(where, key, block, homes)
    return _unknown(where, inner, blocks[block])


def _misplaced(where: str, key: str, block: str, homes: list[str]) -> Problem:
    names = " or ".join(home or "the top level" for home in homes)
    home = homes[0]
    return Problem(
        where=where,
        what=f"{key} stands {f'in {block}' if block else 'at the top level'}, where it is ignored or refused",
        right=f"it belongs under {names}",
        type=f'"{home.split(".")[-1]}": {{"{key}": ...}}' if home else f'"{key}": ... at the top level',
    )


def _unknown(where: str, name: str, known: frozenset[str]) -> Problem:
    leaf = name.rsplit(".", 1)[-1]
    if leaf in ("deepspeed", "deepspeed_config", "ds_config", "config"):
        inside = "what stands inside it, at the top level"
        return Problem(
            where=where, what=f"unknown key '{name}'", right=inside, type=f"remove {leaf} and its braces"
        )
    close = DS_OTHER_NAMES.get(leaf) or nearest(leaf, known)
    return Problem(
        where=where,
        what=f"unknown key '{name}'",
        right=f"did you mean {close}?" if close else "a key that its parser knows",
        type=str(close) if close else f"remove {leaf}",
    )


def _not_a_block(where: str, block: str, value: Any) -> Problem:
    inner = {
        "fp16": '"enabled": true',
        "bf16": '"enabled": true',
        "zero_optimization": '"stage": 2',
        "optimizer": '"type": "AdamW"',
        "zero_optimization.offload_optimizer": '"device": "cpu"',
        "zero_optimization.offload_param": '"device": "cpu"',
    }.get(block, "...")
    return Problem(
        where=where,
        what=f"{block} is {str(value)[:60]!r}, not a block",
        right="a block of keys",
        type=f'"{block.split(".")[-1]}": {{{inner}}}',
    )


def _flat_beside_file(path: Path, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Accelerate refuses these beside a JSON, with a traceback that does not name the file."""
    block = config.get("deepspeed_config")
    if not isinstance(block, Mapping) or "deepspeed_config_file" not in block:
        return
    kept = {"deepspeed_config_file", "zero3_init_flag", "deepspeed_multinode_launcher"}
    wrong = [key for key in block if key not in kept]
    for key in [*wrong, *(key for key in ("mixed_precision",) if key in config)]:
        yield Problem(
            where=str(path),
            what=f"{key} stands beside deepspeed_config_file",
            right="the JSON and the recipe own this value",
            type=f"remove {key}",
        )


def _backend_name(config: Mapping[str, Any], stage: int, where: str) -> str:
    """`zero<stage>`, with `_offload` or `_nvme` where states or parameters leave the card."""
    zero = config.get("zero_optimization")
    zero = zero if isinstance(zero, dict) else {}
    blocks = [zero.get(name) for name in ("offload_optimizer", "offload_param")]
    devices = {str(block.get("device", "none")) for block in blocks if isinstance(block, dict)}
    unknown = devices - {"none", "cpu", "nvme"}
    if unknown:
        raise BadValue(
            Problem(
                where=f"{where}: zero_optimization",
                what=f"unknown offload device {', '.join(map(repr, sorted(map(str, unknown))))}",
                right="none, cpu or nvme",
                type='"device": "cpu"',
            )
        )
    return f"zero{stage}" + ("_nvme" if "nvme" in devices else "_offload" if "cpu" in devices else "")


def _without_effect(path: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Blocks whose work the recipe owns: their figures are compared with it, the rest is not used."""
    if "scheduler" in config:
        yield f"warning: {path.name}: scheduler is not used: lr_scheduler_type and warmup of the recipe are"
    block = config.get("optimizer")
    kind = block.get("type", "AdamW") if isinstance(block, Mapping) else "AdamW"
    if str(kind).lower() not in ("adamw", "adam", "auto"):
        yield f"warning: {path.name}: optimizer.type {kind} is not used: training.optim of the recipe is"


def name_against_stage(path: Path, stage: int) -> Iterator[str]:
    """A warning where a file's name speaks of another ZeRO stage than the one inside."""
    match = re.search(r"(?:zero|stage)[_-]?([0-3])", path.stem.lower())
    if match and int(match.group(1)) != stage:
        yield f"warning: {path.name} is named for stage {match.group(1)}, but the stage inside is {stage}"


def _name_against_offload(path: Path, backend: str) -> Iterator[str]:
    """A warning where a file's name speaks of offload and its content does not, or the other way round."""
    name = re.sub(r"[^a-z]", "", path.stem.lower())
    leaves = not backend[-1].isdigit()
    says_none = any(words in name for words in ("nooffload", "withoutoffload"))
    if "offload" in name and not says_none and not leaves:
        yield f"warning: {path.name} is named for offload, but nothing inside leaves the card"
    elif says_none and leaves:
        yield f"warning: {path.name} is named for no offload, but {backend} is what stands inside"

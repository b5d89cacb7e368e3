"""What a person's own Accelerate YAML decides: backend, processes, and facts that the recipe owns too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.backends.accelerate_values import without_effect
from launcher.backends.lint import name_against_stage, read_accelerate_file
from launcher.errors import BadValue, Problem

PLAIN = {"NO": "single_gpu", "MULTI_GPU": "multi_gpu"}
_OFFERED = (*PLAIN, "FSDP", "DEEPSPEED")
_DEVICES = ("offload_optimizer_device", "offload_param_device")


@dataclass(frozen=True, kw_only=True)
class AccelerateFile:
    """A YAML that passed. `ds_file` is the JSON it names, whose stage decides the backend: then that is None.

    `num_processes` is None where only the command line says it; `settings` are recipe keys that it gives
    by hand; `notices` what it says without effect.
    """

    path: Path
    backend: str | None
    num_processes: int | None
    mixed_precision: str | None
    ds_file: str | None
    settings: dict[str, Any] = field(hash=False)
    notices: tuple[str, ...] = ()


def read_file(path: Path) -> AccelerateFile:
    """The file as an AccelerateFile. Raises RecipeError with every problem found in it."""
    config = read_accelerate_file(path)
    kind = str(config.get("distributed_type", "NO")).upper()
    if config.get("distributed_type") is False:  # a bare NO is false to YAML 1.1
        kind = "NO"
    if kind not in _OFFERED:
        raise _not_offered(path, kind)
    block = config.get("deepspeed_config") if kind == "DEEPSPEED" else None
    ds_file = _named_file(path, (block or {}).get("deepspeed_config_file"))
    fsdp = config.get("fsdp_config") if kind == "FSDP" else None
    return AccelerateFile(
        path=path,
        backend=PLAIN.get(kind)
        or (_fsdp_backend(fsdp or {}) if kind == "FSDP" else _zero_backend(block or {})),
        num_processes=_num_processes(path, config, kind),
        mixed_precision=_unless_no(config.get("mixed_precision")),
        ds_file=ds_file,
        settings={**fsdp_settings(fsdp or {}), **_zero_settings(block or {})},
        notices=tuple(_notices(path, config, block or {})),
    )


def _named_file(path: Path, name: Any) -> str | None:
    if name is None or isinstance(name, str):
        return name
    raise BadValue(
        Problem(
            where=str(path),
            what=f"deepspeed_config_file is {str(name)[:80]!r}, no file's name",
            right="the path of a DeepSpeed JSON",
            type="deepspeed_config_file: ds_configs/zero2.json",
        )
    )


def _not_offered(path: Path, kind: str) -> BadValue:
    return BadValue(
        Problem(
            where=str(path),
            what=f"distributed_type {kind} is not offered here",
            right=f"one of: {', '.join(_OFFERED)}",
            type="distributed_type: MULTI_GPU, which starts CPU processes too where there is no card",
        )
    )


def _num_processes(path: Path, config: Mapping[str, Any], kind: str) -> int | None:
    found = config.get("num_processes", 1 if kind == "NO" else -1)
    if found == -1:  # Accelerate's own word for nothing
        return None
    if isinstance(found, int) and not isinstance(found, bool) and found > 0:
        return found
    raise BadValue(
        Problem(
            where=str(path),
            what=f"num_processes is {found!r}",
            right="how many processes Accelerate starts, one a card",
            type="num_processes: 2",
        )
    )


def _unless_no(value: Any) -> str | None:
    return None if value in (None, False, "no") else str(value)


def _fsdp_backend(block: Mapping[str, Any]) -> str:
    return "fsdp2_offload" if block.get("fsdp_offload_params") is True else "fsdp2"


def fsdp_settings(block: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's keys that an FSDP block gives."""
    found: dict[str, Any] = {}
    names = [name.strip() for name in str(block.get("fsdp_transformer_layer_cls_to_wrap") or "").split(",")]
    if any(names):
        found["backend.wrap_classes"] = tuple(name for name in names if name)
    if block.get("fsdp_activation_checkpointing") is True:
        found["training.activation_checkpointing"] = True
    return found


def _zero_backend(block: Mapping[str, Any]) -> str | None:
    """By the flat keys; a JSON speaks through its own stage."""
    if "deepspeed_config_file" in block:
        return None
    return zero_name(block.get("zero_stage", 2), [block.get(key) for key in _DEVICES])


def zero_name(stage: Any, devices: list[Any]) -> str:
    """`zero<stage>`, with `_nvme` or `_offload` where an offload device is one."""
    leaves = "_nvme" if "nvme" in devices else "_offload" if "cpu" in devices else ""
    return f"zero{stage}{leaves}"


def _zero_settings(block: Mapping[str, Any]) -> dict[str, Any]:
    clipping = block.get("gradient_clipping")
    return {} if clipping in (None, "auto") else {"training.max_grad_norm": clipping}


def _notices(path: Path, config: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[str]:
    if str(block.get("zero_stage")) in ("0", "1", "2", "3"):
        yield from name_against_stage(path, int(block["zero_stage"]))
    if block.get("gradient_accumulation_steps") not in (None, 1, "auto"):
        yield f"warning: {path.name}: gradient_accumulation_steps is solved from the recipe's global batch"
    if config.get("use_cpu") is True:
        yield f"warning: {path.name}: use_cpu has no effect here: hardware.device of the recipe decides"
    yield from (f"warning: {path.name}: {said}" for said in without_effect(config))

"""The values of an Accelerate YAML, and what contradicts what in it. Keys are known good by then.

Accelerate drops some of these without a word, and stops at others with a traceback that names no file.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from launcher.errors import Problem

Place = Callable[[str], str]
_KINDS = ("NO", "MULTI_GPU", "FSDP", "DEEPSPEED")
_PRECISIONS = {
    "fp32": "no",
    "float32": "no",
    "none": "no",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8": "bf16",
}
_BLOCKS = {"deepspeed_config": "DEEPSPEED", "fsdp_config": "FSDP"}
_FSDP1 = (
    *("fsdp_sharding_strategy", "fsdp_backward_prefetch", "fsdp_forward_prefetch", "fsdp_use_orig_params"),
    "fsdp_sync_module_states",
)
_CHOICES = {
    "fsdp_auto_wrap_policy": ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"),
    "fsdp_state_dict_type": ("SHARDED_STATE_DICT", "FULL_STATE_DICT", "LOCAL_STATE_DICT"),
    "offload_optimizer_device": ("none", "cpu", "nvme"),
    "offload_param_device": ("none", "cpu", "nvme"),
}
_SWITCHES = (
    *("fsdp_offload_params", "fsdp_activation_checkpointing", "fsdp_cpu_ram_efficient_loading"),
    *("zero3_init_flag", "zero3_save_16bit_model"),
)
_NOT_USED = ("fp8_config", "megatron_lm_config", "mpirun_config", "parallelism_config", "dynamo_config")


def wrong_values(config: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    """Every finding; `place` gives `file:line` of a key."""
    kind = str(config.get("distributed_type", ""))
    if kind.upper() in _KINDS and kind not in _KINDS and kind.lower() != "no":
        yield _problem(
            place, "distributed_type", f"'{kind}'", "in capitals, as Accelerate reads it", kind.upper()
        )
    yield from _head(config, place)
    yield from _cards(config, kind.upper(), place)
    for name, owner in _BLOCKS.items():
        block = config.get(name)
        if not isinstance(block, Mapping) or not block:
            continue
        if kind and kind.upper() in _KINDS and kind.upper() != owner:
            what = f"it stands here, and distributed_type is {kind}: nothing of it would be used"
            yield _problem(
                place,
                name,
                what,
                f"distributed_type: {owner}, or no {name}",
                owner,
                key_to_type="distributed_type",
            )
        yield from _block(block, place)
    if isinstance(block := config.get("deepspeed_config"), Mapping):
        yield from _zero(block, place)


def _problem(place: Place, key: str, what: str, right: str, value: str, *, key_to_type: str = "") -> Problem:
    return Problem(
        where=place(key), what=f"{key}: {what}", right=right, type=f"{key_to_type or key}: {value}"
    )


def _head(config: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    precision = config.get("mixed_precision")
    if precision not in (None, False, "no", "fp16", "bf16"):
        close = _PRECISIONS.get(str(precision).lower(), "bf16")
        yield _problem(place, "mixed_precision", repr(precision)[:60], "one of no, fp16, bf16", close)
    if isinstance(config.get("fp16"), bool):
        meant = "fp16" if config["fp16"] else "no"
        yield _problem(
            place, "fp16", "an old name", "mixed_precision says it now", meant, key_to_type="mixed_precision"
        )
    where = config.get("compute_environment")
    if where not in (None, "LOCAL_MACHINE"):
        yield _problem(place, "compute_environment", repr(where)[:60], "this machine only", "LOCAL_MACHINE")
    machines = config.get("num_machines", 1)
    if machines not in (None, 1):
        what = f"{str(machines)[:20]}: several machines are not done here (docs/not-here.md)"
        yield _problem(place, "num_machines", what, "one machine, any number of its cards", "1")
    port = config.get("main_process_port")
    if port is not None and (not isinstance(port, int) or not 0 <= port < 65536):
        yield _problem(
            place, "main_process_port", repr(port)[:60], "a port's number; 0 takes a free one", "0"
        )


def _cards(config: Mapping[str, Any], kind: str, place: Place) -> Iterator[Problem]:
    """`gpu_ids` is text to Accelerate, and has a card for every process; `NO` starts one."""
    if (
        kind in ("NO", "FALSE")
        and isinstance(config.get("num_processes"), int)
        and config["num_processes"] > 1
    ):
        what = f"{config['num_processes']}, and distributed_type NO starts one"
        right = "MULTI_GPU for several processes, or num_processes: 1"
        kinds = "distributed_type"
        yield _problem(place, "num_processes", what, right, "MULTI_GPU", key_to_type=kinds)
    ids, count = config.get("gpu_ids"), config.get("num_processes")
    if ids is None or ids == "all":
        return
    if not isinstance(ids, str):
        what = f"{str(ids)[:40]} is no text, and Accelerate cannot split it"
        meant = ",".join(map(str, ids)) if isinstance(ids, list) else ids
        yield _problem(place, "gpu_ids", what, "text in quotes", f'"{str(meant)[:40]}"')
        return
    cards = [each.strip() for each in ids.split(",") if each.strip()]
    if isinstance(count, int) and count > len(cards) > 0:
        what = f"{len(cards)} card(s) for num_processes {count}: two processes would share one"
        right = f"num_processes: {len(cards)}, or more cards"
        yield _problem(place, "gpu_ids", what, right, str(len(cards)), key_to_type="num_processes")
    elif kind == "MULTI_GPU" and len(cards) == 1:
        what = "one card, and Accelerate refuses MULTI_GPU on one"
        yield _problem(place, "gpu_ids", what, "all, or several cards", "all")


def _block(block: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    for key, names in _CHOICES.items():
        value = block.get(key)
        if value is not None and value not in names:
            close = next((each for each in names if str(value).upper() in each.upper()), names[0])
            yield _problem(place, key, repr(value)[:60], f"one of {', '.join(names)}", close)
    switches = [*_SWITCHES]
    if str(block.get("fsdp_version")) == "2":
        switches.append("fsdp_reshard_after_forward")
    for key in switches:
        value = block.get(key)
        if value is not None and not isinstance(value, bool):
            meant = (
                "false"
                if str(value).lower() in ("false", "no", "off", "0", "no_shard", "shard_grad_op")
                else "true"
            )
            yield _problem(place, key, repr(value)[:60], "true or false, without quotes", meant)


def _zero(block: Mapping[str, Any], place: Place) -> Iterator[Problem]:
    """The flat keys of DeepSpeed; a JSON speaks for itself."""
    if "deepspeed_config_file" in block:
        return
    stage = block.get("zero_stage", 2)
    if stage not in (1, 2, 3) or isinstance(stage, bool):
        right = "1 (states), 2 (and gradients) or 3 (and parameters)"
        yield _problem(place, "zero_stage", repr(stage)[:20], right, "2")
        return
    param, optimizer = block.get("offload_param_device"), block.get("offload_optimizer_device")
    if param in ("cpu", "nvme") and stage != 3:
        what = f"{param}, and stage {stage} keeps parameters whole on every card"
        yield _problem(place, "offload_param_device", what, "zero_stage: 3, or none", "none")
    elif "nvme" in (param, optimizer):
        key = "offload_param_device" if param == "nvme" else "offload_optimizer_device"
        yield _problem(
            place,
            key,
            "nvme: its path is never handed on by accelerate launch",
            "a DeepSpeed JSON, which has the path",
            "ds_configs/zero3_nvme.json",
            key_to_type="deepspeed_config_file",
        )


def without_effect(config: Mapping[str, Any]) -> Iterator[str]:
    """What the file says and nobody here does."""
    kind = str(config.get("distributed_type", "NO")).upper()
    if kind in ("MULTI_GPU", "FSDP", "DEEPSPEED") and config.get("num_processes", -1) == -1:
        yield "num_processes is not said: type --num_processes N behind accelerate launch"
    fsdp = config.get("fsdp_config")
    if isinstance(fsdp, Mapping) and (idle := [name for name in _FSDP1 if name in fsdp]):
        yield f"{', '.join(idle)}: of FSDP's first version, without effect in the second"
    zero = config.get("deepspeed_config")
    if isinstance(zero, Mapping) and zero.get("zero_stage") in (1, 2):
        idle = [name for name in ("zero3_init_flag", "zero3_save_16bit_model") if zero.get(name) is True]
        if idle:
            yield f"{', '.join(idle)}: without effect, zero_stage is {zero['zero_stage']}"
    if used := [name for name in _NOT_USED if _says_something(config.get(name))]:
        yield f"{', '.join(used)}: not used here"


def _says_something(block: Any) -> bool:
    if not isinstance(block, Mapping):
        return False
    return any(value not in (None, False, "NO", "no", "") for value in block.values())

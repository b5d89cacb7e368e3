"""Accelerate's YAML. It knows the starter's side alone: backend, processes, precision."""

from launcher.backends.accelerate_file import zero_name
from launcher.backends.options import BACKENDS
from launcher.recipe.importing.batch import settle_batch
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.nested_files import put_fsdp, settle_backend
from launcher.recipe.importing.table import Nothing
from launcher.recipe.importing.tables.accelerate import ROWS
from launcher.recipe.importing.values import is_on, whole_above_zero

_DS = "deepspeed_config"
_KINDS = {"NO": "single_gpu", "MULTI_GPU": "multi_gpu", "FSDP": "fsdp2", "DEEPSPEED": "zero2"}


def settle(draft: Draft) -> None:
    """The kind, its block, processes and accumulation."""
    kind_key, _ = draft.find("distributed_type")
    kind = draft.take("distributed_type")
    kind = "NO" if kind in (None, False) else str(kind).upper()
    _processes(draft, kind)
    if kind == "FSDP":
        _fsdp(draft, kind_key)
    elif kind == "DEEPSPEED":
        _deepspeed(draft, kind_key)
    elif kind in _KINDS:
        draft.put(kind_key, kind, {"backend.name": _KINDS[kind]})
    else:
        draft.leave(kind_key, kind, "not offered here", f"one of: {', '.join(_KINDS)}")
    _unused_blocks(draft, kind)
    settle_batch(draft, micro="(none)", accumulation=f"{_DS}.gradient_accumulation_steps", default_micro=None)


def _processes(draft: Draft, kind: str) -> None:
    key, _ = draft.find("num_processes")
    value = draft.take("num_processes")
    if value is None:
        return
    try:
        count = 1 if kind == "NO" else whole_above_zero(value)
    except (Nothing, ValueError, TypeError):
        draft.leave(key, value, "hardware.gpus: a number of processes is wanted", "--gpus N")
        return
    draft.num_processes = draft.num_processes or count
    draft.put(key, value, {"hardware.gpus": draft.num_processes})


def _fsdp(draft: Draft, key: str) -> None:
    block = draft.take("fsdp_config")
    put_fsdp(draft, key, "FSDP", "fsdp_config", block if isinstance(block, dict) else {}, [])


def _deepspeed(draft: Draft, key: str) -> None:
    config_key, _ = draft.find(f"{_DS}.deepspeed_config_file")
    file = draft.take(f"{_DS}.deepspeed_config_file")
    if file:
        draft.given["deepspeed"] = file
        settle_backend(draft)
        draft.put(key, "DEEPSPEED", {})
        return
    stage_key, _ = draft.find(f"{_DS}.zero_stage")
    stage = draft.take(f"{_DS}.zero_stage", 2)
    devices = [
        str(draft.take(f"{_DS}.{name}_device", "none")) for name in ("offload_optimizer", "offload_param")
    ]
    name = "multi_gpu" if str(stage) == "0" else zero_name(stage, devices)
    if name not in BACKENDS.names():
        draft.leave(stage_key, stage, f"{name} is no backend here", "zero1, zero2, zero2_offload, zero3 ...")
        return
    draft.put(stage_key, stage, {"backend.name": name})
    for each in ("offload_optimizer_nvme_path", "offload_param_nvme_path"):
        path_key, _ = draft.find(f"{_DS}.{each}")
        path = draft.take(f"{_DS}.{each}")
        if path and name == "zero3_nvme":
            draft.put(path_key, path, {"backend.nvme_path": str(path)})
        elif path:
            draft.quiet.append(path_key)


def _unused_blocks(draft: Draft, kind: str) -> None:
    """A block of another kind is read by nobody."""
    for block, wanted in ((_DS, "DEEPSPEED"), ("fsdp_config", "FSDP")):
        inside = [key for key in draft.given if key == block or key.startswith(f"{block}.")]
        if kind == wanted:
            continue
        for key in inside:
            value = draft.take(key)
            if value and not (isinstance(value, str) and not is_on(value) and value in ("none", "no")):
                draft.leave(
                    key, value, f"distributed_type is {kind}, so that Accelerate does not read it", wanted
                )
            else:
                draft.quiet.append(key)


DIALECTS.register(
    "accelerate",
    Dialect(
        name="accelerate",
        title="Accelerate's YAML",
        page="from-accelerate",
        rows=ROWS,
        signs=frozenset(
            {
                "compute_environment",
                "distributed_type",
                "main_training_function",
                "machine_rank",
                "rdzv_backend",
                "downcast_bf16",
                "num_machines",
            }
        ),
        settle=settle,
        blocks=frozenset({_DS}),
    ),
)

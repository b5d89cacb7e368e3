"""DeepSpeed's JSON. It knows neither model nor rows: those stay to be said."""

from launcher.backends.accelerate_file import zero_name
from launcher.backends.file_keys import DS_BLOCKS, DS_OTHER_NAMES, DS_REMOVED
from launcher.backends.options import BACKENDS
from launcher.recipe.importing.batch import settle_batch
from launcher.recipe.importing.dialect import DIALECTS, Dialect
from launcher.recipe.importing.draft import Draft
from launcher.recipe.importing.intervals import settle_precision
from launcher.recipe.importing.tables.deepspeed import ROWS
from launcher.recipe.importing.values import is_on

_ZERO = "zero_optimization"


def settle(draft: Draft) -> None:
    """Backend by stage and devices, batch, precision; keys where DeepSpeed does not look for them."""
    _backend(draft)
    settle_batch(
        draft,
        micro="train_micro_batch_size_per_gpu",
        accumulation="gradient_accumulation_steps",
        whole="train_batch_size",
        default_micro=None,
    )
    settle_precision(
        draft,
        fp16="fp16.enabled",
        bf16="bf16.enabled bfloat16.enabled",
        what_else="DeepSpeed then computes in fp32",
    )
    if draft.has("optimizer.type") or draft.has("optimizer.params.lr"):
        draft.notes.append("optimizer, scheduler: the recipe owns both; what the JSON said is written out")
    for key, value in [*draft.given.items()]:
        if (reason := _explained(key)) is not None:
            draft.take(key)
            draft.leave(key, value, *reason)
    _foreign_options(draft)


def _backend(draft: Draft) -> None:
    zero = draft.take(_ZERO)
    stage_key, _ = draft.find(f"{_ZERO}.stage")
    stage = draft.take(f"{_ZERO}.stage", 1 if zero is True else None)
    devices = [_device(draft, f"{_ZERO}.{name}") for name in ("offload_optimizer", "offload_param")]
    key, _ = draft.find(f"{_ZERO}.cpu_offload")
    if is_on(old := draft.take(f"{_ZERO}.cpu_offload")):
        devices.append("cpu")
        draft.put(key, old, {})
    if stage is None:
        return
    name = "multi_gpu" if str(stage) == "0" else zero_name(stage, devices)
    if name in BACKENDS.names():
        draft.put(stage_key, stage, {"backend.name": name})
        for each in ("offload_optimizer", "offload_param"):
            _nvme_path(draft, f"{_ZERO}.{each}.nvme_path", name)
    else:
        draft.leave(stage_key, stage, f"{name} is no backend here", "zero1, zero2, zero2_offload, zero3 ...")


def _device(draft: Draft, block: str) -> str:
    key, value = draft.find(f"{block}.device")
    device = str(draft.take(f"{block}.device", "none"))
    whole = draft.take(block)  # null, or a block without keys
    if whole is not None:
        draft.quiet.append(block)
    if device not in ("none", "cpu", "nvme"):
        draft.leave(key, value, f"no device of DeepSpeed's: {device}", "cpu or nvme")
        return "none"
    draft.quiet += [key] if key in (f"{block}.device",) and device == "none" and value == "none" else []
    if device != "none":
        draft.put(key, device, {})
    return device


def _nvme_path(draft: Draft, key: str, backend: str) -> None:
    value = draft.take(key)
    if value is None:
        return
    if backend == "zero3_nvme":
        draft.put(key, value, {"backend.nvme_path": str(value)})
    else:
        draft.quiet.append(key)


def _explained(key: str) -> tuple[str, str] | None:
    """Why DeepSpeed itself does not take a key: removed, renamed, or in another block. None where it does."""
    if key in DS_REMOVED:
        return "removed from DeepSpeed", DS_REMOVED[key]
    block, _, leaf = key.rpartition(".")
    if DIALECTS.get("deepspeed").row_of(key) is not None:
        return None
    homes = [home for home, keys in DS_BLOCKS.items() if leaf in keys and home != block]
    if leaf not in DS_BLOCKS.get(block, ()) and homes:
        home = homes[0] or "the top level"
        return f"it stands where DeepSpeed ignores it; it belongs under {home}", home
    if leaf in DS_OTHER_NAMES:
        return "an old name", DS_OTHER_NAMES[leaf]
    return None


def _foreign_options(draft: Draft) -> None:
    """Buckets that this stage's backend does not have are told here, by name."""
    backend = draft.values.get("backend.name")
    if backend is None:
        return
    known = BACKENDS.get(backend).options.model_fields
    for key, value in [*draft.given.items()]:
        row = draft.dialect.row_of(key)
        if row and row.ours.startswith("backend.") and row.ours.removeprefix("backend.") not in known:
            draft.take(key)
            if value == "auto":
                draft.quiet.append(key)
            else:
                draft.leave(key, value, f"backend {backend} has no such option", "zero3 has it")


DIALECTS.register(
    "deepspeed",
    Dialect(
        name="deepspeed",
        title="DeepSpeed's JSON",
        page="from-deepspeed",
        rows=ROWS,
        signs=frozenset(
            {
                "zero_optimization",
                "train_micro_batch_size_per_gpu",
                "train_batch_size",
                "gradient_clipping",
                "steps_per_print",
                "wall_clock_breakdown",
            }
        ),
        settle=settle,
        blocks=frozenset(name for name in DS_BLOCKS if name and name != "activation_checkpointing")
        | {"optimizer.params", "scheduler.params", "tensorboard", "data_types", "bfloat16"},
    ),
)

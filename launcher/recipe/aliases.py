"""Names that other fine-tuning tools use for the same thing, so that people can paste what they have.

A table only: the other name, our key, and how the value is read. Applying it is `translate`'s work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Convert = Callable[[Any], Any]
LEFT_OUT = object()


@dataclass(frozen=True, kw_only=True)
class Alias:
    """Our key for another tool's name. `convert` may give LEFT_OUT, or raise ValueError with the reason."""

    key: str
    convert: Convert = lambda value: value


def _dtype(value: Any) -> Any:
    short = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "half": "float16"}
    name = str(value).removeprefix("torch.")
    return short.get(name, name)


def _targets(value: Any) -> Any:
    if value in ("all", "all-linear"):
        return "all-linear"
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _mixed(value: Any) -> Any:
    return "fp32" if value in ("no", "none", False, None) else value


def _share(value: Any) -> Any:
    if isinstance(value, int | float) and value >= 1:
        raise ValueError("a share of all steps lies below 1; for steps write warmup: 100")
    return value


def _held_out(value: Any) -> Any:
    if isinstance(value, int | float) and value >= 1:
        raise ValueError("only a share below 1 can be held out, such as 0.1")
    return value if value else LEFT_OUT


def _strategy(value: Any) -> Any:
    if value == "steps":
        return LEFT_OUT
    return "no" if value is False else value


def _per_epoch(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{1 / value:g} epochs" if value > 0 else "no"
    raise ValueError("a number of times in one epoch, such as 4")


def _one_file(value: Any) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and isinstance(value.get("path"), str):
        return value["path"]
    if isinstance(value, str):
        return value
    raise ValueError("one file, such as train.csv")


def _only_when_true(meaning: str) -> Convert:
    def convert(value: Any) -> Any:
        if value in (True, "true", "auto", "fa2", "yes"):
            return "auto" if value == "auto" else meaning
        if value in (False, None, "false", "no", "disabled"):
            return LEFT_OUT
        raise ValueError("true or false")

    return convert


def _trained(when_true: str, when_false: str) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, bool):
            return when_true if value else when_false
        raise ValueError("true or false")

    return convert


ALIASES: dict[str, Alias] = {}


def _same(key: str, *names: str, convert: Convert | None = None) -> None:
    for name in names:
        ALIASES[name] = Alias(key=key, convert=convert) if convert else Alias(key=key)


_same(
    "model.model_name_or_path",
    "base_model",
    "model_name",
    "model_id",
    "model_path",
    "pretrained_model_name_or_path",
)
_same("model.dtype", "torch_dtype", convert=_dtype)
_same("model.revision", "model_revision", "revision_of_model")
_same(
    "model.attn_implementation", "flash_attention", "flash_attn", convert=_only_when_true("flash_attention_2")
)
_same("model.attn_implementation", "use_flash_attention_2", convert=_only_when_true("flash_attention_2"))
_same("data.train_file", "dataset", "datasets", "train_data", "train_path", "dataset_path", convert=_one_file)
_same(
    "data.eval_file",
    "eval_dataset",
    "validation_file",
    "val_file",
    "test_file",
    "eval_data",
    convert=_one_file,
)
_same("data.eval_fraction", "val_size", "val_set_size", "validation_split", convert=_held_out)
_same(
    "data.max_length",
    "cutoff_len",
    "max_seq_length",
    "max_seq_len",
    "sequence_len",
    "model_max_length",
    "block_size",
)
_same("data.train_on", "train_on_inputs", "train_on_prompt", convert=_trained("all", "completions"))
_same(
    "data.train_on",
    "completion_only_loss",
    "assistant_only_loss",
    "mask_prompt",
    convert=_trained("completions", "all"),
)
_same("data.max_train_rows", "max_samples", "max_train_samples")
_same("data.max_eval_rows", "max_eval_samples")
_same("data.dataloader_num_workers", "num_workers", "dataloader_workers")
_same("data.columns.text", "dataset_text_field", "text_column", "text_column_name")
_same("data.columns.label", "label_column", "label_column_name")
_same("adapter.method", "finetuning_type", "peft_type", convert=lambda value: str(value).lower())
_same("adapter.lora_r", "lora_rank", "lora_dim")
_same("adapter.lora_target_modules", "target_modules", "lora_target", convert=_targets)
_same("adapter.lora_target_modules", "lora_target_linear", convert=_only_when_true("all-linear"))
_same(
    "training.per_device_train_batch_size",
    "micro_batch_size",
    "train_micro_batch_size_per_gpu",
    "per_device_batch_size",
    "batch_size_per_device",
    "batch_size_per_gpu",
    "device_batch_size",
)
_same("training.global_batch_size", "total_batch_size", "effective_batch_size", "total_train_batch_size")
_same("training.per_device_eval_batch_size", "eval_batch_size")
_same("training.num_train_epochs", "num_epochs", "epochs")
_same("training.learning_rate", "lr")
_same("training.lr_scheduler_type", "lr_scheduler")
_same("training.warmup", "warmup_ratio", "warmup_proportion", convert=_share)
_same("training.warmup", "warmup_steps", "num_warmup_steps")
_same("training.adam_epsilon", "adam_eps")
_same("training.max_grad_norm", "gradient_clipping", "clip_grad_norm", "max_norm")
_same("training.optim", "optimizer")
_same("training.precision", "mixed_precision", convert=_mixed)
_same("training.precision", "bf16", convert=_only_when_true("bf16"))
_same("training.precision", "fp16", convert=_only_when_true("fp16"))
_same("training.activation_checkpointing", "gradient_checkpointing")
_same("training.eval_steps", "eval_strategy", "evaluation_strategy", convert=_strategy)
_same("training.eval_steps", "evals_per_epoch", convert=_per_epoch)
_same("training.save_steps", "save_strategy", convert=_strategy)
_same("training.save_steps", "saves_per_epoch", convert=_per_epoch)
_same("hardware.gpus", "num_gpus", "n_gpu", "num_processes")

# What other tools must be told and this one need not.
NOT_NEEDED = [
    "do_train",
    "do_eval",
    "overwrite_cache",
    "plot_loss",
    "remove_unused_columns",
    "preprocessing_num_workers",
]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A name that is understood and not taken: why, what stands in its place, what to type."""

    why: str
    right: str
    type: str


_PLACEMENT = Refusal(
    why="the launcher owns placement: every process loads the whole model onto its own card",
    right="leave it out; hardware.gpus and backend say over how many cards and how",
    type="remove this line",
)
_BATCH = Refusal(
    why="it may mean the rows of one card or of all cards",
    right="training.global_batch_size (all cards) or training.per_device_train_batch_size (one card)",
    type="global_batch_size: {value}",
)
_BITS = Refusal(
    why="it counts bits, and this recipe names the form",
    right="model.load_in_4bit or model.load_in_8bit, beside an adapter such as lora",
    type="load_in_{value}bit: true",
)
_CONFIG = Refusal(
    why="the backend writes its own configuration",
    right="backend: and a name; or the file on the starter's command line",
    type="backend: zero2",
)

REFUSED: dict[str, Refusal] = {
    "device_map": _PLACEMENT,
    "dataparallel": _PLACEMENT,
    "data_parallel": _PLACEMENT,
    "use_data_parallel": _PLACEMENT,
    "local_rank": _PLACEMENT,
    "world_size": _PLACEMENT,
    "cuda_visible_devices": _PLACEMENT,
    "batch_size": _BATCH,
    "train_batch_size": _BATCH,
    "per_gpu_train_batch_size": _BATCH,
    "bs": _BATCH,
    "batchsize": _BATCH,
    "quantization_bit": _BITS,
    "deepspeed": _CONFIG,
    "deepspeed_config": _CONFIG,
    "deepspeed_config_file": _CONFIG,
    "fsdp": _CONFIG,
    "fsdp_config": _CONFIG,
    "<<": Refusal(
        why="merge keys are not read", right="extends: names a parent recipe", type="extends: quickstart"
    ),
}

ACCUMULATION = [
    "gradient_accumulation_steps",
    "gradient_accumulation",
    "grad_accum",
    "accumulation_steps",
    "accumulate_grad_batches",
]

"""Keys of DeepSpeed's JSON."""

from typing import Any

from launcher.recipe.importing.table import Nothing, Row, Several, left, needless, read, together
from launcher.recipe.importing.values import above_zero, number, truth, whole_above_zero, yes

_ZERO = "zero_optimization"
_BATCH = "train_batch_size is the truth here; the other two follow from it and the cards found"
_OFFLOADED = "optimizer or parameters in host RAM or on a disk: zero2_offload, zero3_offload, zero3_nvme"


def _betas(value: Any) -> Several:
    if value in (None, "auto"):
        raise Nothing
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("two numbers are wanted")
    first, second = (number(each) for each in value)
    return Several({"training.adam_beta1": first, "training.adam_beta2": second})


def _optimizer(value: Any) -> str:
    if str(value).lower() in ("adamw", "adam"):
        return "adamw_torch_fused"
    raise ValueError("AdamW is meant here")


def _schedule(value: Any) -> str:
    known = {
        "WarmupLR": "constant_with_warmup",
        "WarmupDecayLR": "linear",
        "WarmupCosineLR": "cosine",
        "auto": "",
    }
    if not (found := known.get(str(value), str(value))):
        raise Nothing
    if found not in known.values():
        raise ValueError(f"known are {', '.join(name for name in known if name != 'auto')}")
    return found


def _bucket(name: str) -> Row:
    return read(
        f"{_ZERO}.{name}", f"backend.{name}", whole_above_zero, "auto: the backend's own, sized for 24 GB"
    )


ROWS: tuple[Row, ...] = (
    together("train_batch_size", "training.global_batch_size", _BATCH),
    together("train_micro_batch_size_per_gpu", "training.per_device_train_batch_size", _BATCH),
    together("gradient_accumulation_steps", "training.global_batch_size", _BATCH),
    read(
        "gradient_clipping",
        "training.max_grad_norm",
        above_zero,
        "0 there: never; 1.0 here where it is not said",
    ),
    together("bf16.enabled bfloat16.enabled", "training.precision", "bf16"),
    together("fp16.enabled", "training.precision", "fp16, with a scaler of our own"),
    together(f"{_ZERO}.stage", "backend.name", "zero1, zero2 or zero3; 0: multi_gpu"),
    together(f"{_ZERO}.offload_optimizer.device", "backend.name", _OFFLOADED),
    together(f"{_ZERO}.offload_param.device", "backend.name", _OFFLOADED),
    together(f"{_ZERO}.offload_optimizer.nvme_path {_ZERO}.offload_param.nvme_path", "backend.nvme_path"),
    together(f"{_ZERO}.cpu_offload", "backend.name", "the old name of offload_optimizer"),
    read("optimizer.type", "training.optim", _optimizer, nearest="adamw_torch_fused"),
    read("optimizer.params.lr", "training.learning_rate", above_zero),
    read("optimizer.params.betas", "training.adam_beta1, training.adam_beta2", _betas),
    read("optimizer.params.eps", "training.adam_epsilon", above_zero),
    read("optimizer.params.weight_decay", "training.weight_decay", number),
    read("scheduler.type", "training.lr_scheduler_type", _schedule, nearest="linear or cosine"),
    read("scheduler.params.warmup_num_steps", "training.warmup", whole_above_zero, "steps"),
    read("scheduler.params.warmup_max_lr", "training.learning_rate", above_zero),
    *map(
        _bucket,
        (
            "reduce_bucket_size",
            "allgather_bucket_size",
            "stage3_prefetch_bucket_size",
            "stage3_param_persistence_threshold",
            "stage3_max_live_parameters",
            "sub_group_size",
        ),
    ),
    read(
        f"{_ZERO}.stage3_max_reuse_distance",
        "backend.stage3_max_reuse_distance",
        whole_above_zero,
        "of zero3_nvme",
    ),
    read(f"{_ZERO}.overlap_comm", "backend.overlap_comm", truth),
    read(f"{_ZERO}.contiguous_gradients", "backend.contiguous_gradients", truth),
    read("steps_per_print", "training.logging_steps", whole_above_zero),
    read("tensorboard.enabled", "tracking.report_to", yes(["tensorboard"])),
    needless(
        f"$schema {_ZERO}.reduce_scatter {_ZERO}.allgather_partitions {_ZERO}.round_robin_gradients "
        f"{_ZERO}.offload_optimizer.pin_memory {_ZERO}.offload_param.pin_memory "
        f"{_ZERO}.stage3_gather_16bit_weights_on_model_save {_ZERO}.stage3_gather_fp16_weights_on_model_save "
        f"{_ZERO}.offload_optimizer.fast_init {_ZERO}.load_from_fp32_weights "
        f"{_ZERO}.elastic_checkpoint {_ZERO}.legacy_stage1 {_ZERO}.ignore_unused_parameters "
        f"{_ZERO}.cpu_offload_use_pin_memory zero_allow_untested_optimizer zero_force_ds_cpu_optimizer "
        "wall_clock_breakdown memory_breakdown dump_state disable_allgather data_types.grad_accum_dtype "
        "fp16.auto_cast fp16.loss_scale fp16.initial_scale_power fp16.loss_scale_window fp16.hysteresis "
        "fp16.min_loss_scale fp16.consecutive_hysteresis bf16.check_grad_overflow bf16.immediate_grad_update "
        "checkpoint tensorboard.output_path tensorboard.job_name optimizer.legacy_fusion "
        "optimizer.params.torch_adam optimizer.params.adam_w_mode scheduler.params.total_num_steps",
        "written by the backend or by the loop itself",
    ),
    left("scheduler.params.warmup_min_lr", "the warm-up starts at zero", "training.warmup"),
    left(
        "scheduler.params.warmup_type",
        "the warm-up is a straight line",
        "training.warmup",
        harmless=("linear",),
    ),
    left(
        "activation_checkpointing",
        "this block needs a model written for DeepSpeed's checkpointing",
        "training.activation_checkpointing",
        harmless=({"partition_activations": False},),
    ),
    left(
        f"{_ZERO}.zero_hpz_partition_size {_ZERO}.zero_quantized_weights {_ZERO}.zero_quantized_gradients "
        f"{_ZERO}.zero_quantized_nontrainable_weights {_ZERO}.zenflow",
        "ZeRO++ is not offered by recipe",
        "--ds FILE uses your JSON as it is",
        harmless=(1,),
    ),
    left(
        "aio torch_autocast compile flops_profiler comms_logger autotuning prescale_gradients "
        "gradient_predivide_factor communication_data_type sparse_attention data_efficiency tensor_parallel "
        "sequence_parallel_size pipeline hybrid_engine wandb csv_monitor comet",
        "not offered by recipe",
        "--ds FILE uses your JSON as it is",
    ),
)

"""Keys of Accelerate's YAML."""

from typing import Any

from launcher.recipe.importing.table import Nothing, Row, left, needless, read, together
from launcher.recipe.importing.values import above_zero, yes

_DS = "deepspeed_config"


def _precision(value: Any) -> str:
    if str(value).lower() in ("no", "none", "false"):
        raise Nothing
    if str(value) not in ("bf16", "fp16"):
        raise ValueError("known here: bf16, fp16")
    return str(value)


ROWS: tuple[Row, ...] = (
    together(
        "distributed_type",
        "backend.name",
        "NO: single_gpu; MULTI_GPU: multi_gpu; FSDP: fsdp2; DEEPSPEED: by the stage",
    ),
    together("num_processes", "hardware.gpus"),
    read("mixed_precision", "training.precision", _precision, "`no` there means unstated: auto here"),
    read("use_cpu", "hardware.device", yes("cpu")),
    together(f"{_DS}.deepspeed_config_file", "backend.name", "the JSON is read for its stage and offload"),
    together(f"{_DS}.zero_stage", "backend.name", "zero1, zero2 or zero3"),
    together(f"{_DS}.offload_optimizer_device", "backend.name", "cpu: _offload; nvme: zero3_nvme"),
    together(f"{_DS}.offload_param_device", "backend.name", "cpu: _offload; nvme: zero3_nvme"),
    together(f"{_DS}.offload_optimizer_nvme_path {_DS}.offload_param_nvme_path", "backend.nvme_path"),
    together(
        f"{_DS}.gradient_accumulation_steps",
        "training.global_batch_size",
        "counts with the script's rows of one card",
    ),
    read(f"{_DS}.gradient_clipping", "training.max_grad_norm", above_zero),
    together("fsdp_config", "backend.name", "fsdp2, or fsdp2_offload with fsdp_offload_params"),
    together("fsdp_config.fsdp_transformer_layer_cls_to_wrap", "backend.wrap_classes"),
    together("fsdp_config.fsdp_reshard_after_forward", "backend.reshard_after_forward"),
    together("fsdp_config.fsdp_activation_checkpointing", "training.activation_checkpointing"),
    needless(
        f"compute_environment main_training_function main_process_ip main_process_port machine_rank "
        f"rdzv_backend "
        f"same_network {_DS}.zero3_init_flag {_DS}.zero3_save_16bit_model {_DS}.deepspeed_multinode_launcher "
        "enable_cpu_affinity debug commands command_file",
        "written by the backend or chosen at the start",
    ),
    left(
        "gpu_ids",
        "cards are chosen from outside",
        "CUDA_VISIBLE_DEVICES=0,1 launcher run ...",
        harmless=("all",),
    ),
    left("num_machines", "one machine only", "hardware.gpus", harmless=(1,)),
    left("downcast_bf16", "for TPUs alone", harmless=("no",)),
    left(
        "dynamo_config dynamo_backend",
        "models are not compiled",
        harmless=("NO", "no", {"dynamo_backend": "NO"}),
    ),
    left("fp8_config", "fp8 is not offered", "training.precision: bf16"),
    left(
        "megatron_lm_config parallelism_config",
        "tensor and context parallelism are not offered",
        "backend: fsdp2",
    ),
    left("mpirun_config tpu_env tpu_name tpu_use_cluster tpu_use_sudo tpu_vm tpu_zone", "no TPU and no MPI"),
    left(
        f"{_DS}.deepspeed_hostfile {_DS}.deepspeed_inclusion_filter {_DS}.deepspeed_exclusion_filter",
        "one machine only",
        "CUDA_VISIBLE_DEVICES",
    ),
    left(f"{_DS}.deepspeed_moe_layer_cls_names", "mixtures of experts are not divided"),
)

"""DeepSpeed ZeRO: optimizer states, then gradients, then parameters divided over the ranks.

Every stage is one registration; what the recipe owns (batch, clipping, precision) is written
as `auto` and resolved from the plan by `resolve`.
"""

import copy
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions, accelerate_config
from launcher.facts import ShardingFacts, StepSettings

CONNECT = "launcher.backends.zero_torch:connect"
CONNECT_3 = "launcher.backends.zero3_torch:connect"
CONNECT_NVME = "launcher.backends.zero3_nvme_torch:connect"
NOT_IN_THE_JSON = {"name", "nvme_path", "cpu_adam"}
CpuAdam = Literal["auto", "deepspeed", "torch"]
_CPU_ADAM_HELP = (
    "Which AdamW steps in host RAM: auto takes DeepSpeed's where its operator is compiled already, else "
    "torch's; deepspeed compiles it at the first start (minutes)."
)


class ZeroOptions(BackendOptions):
    """Communication buffers. DeepSpeed's own 5e8 elements would take gigabytes of a 24 GB card."""

    reduce_bucket_size: int = Field(50_000_000, ge=1, description="Gradient elements summed at once.")
    allgather_bucket_size: int = Field(50_000_000, ge=1, description="Weight elements gathered at once.")
    overlap_comm: bool = Field(True, description="Sum gradients during the backward pass; more buffers.")
    contiguous_gradients: bool = Field(True, description="Copy gradients into one buffer as they come.")


class Zero1Options(ZeroOptions):
    """ZeRO stage 1: optimizer states divided."""

    name: Literal["zero1"] = Field("zero1", description="Optimizer states divided.")


class Zero2Options(ZeroOptions):
    """ZeRO stage 2: optimizer states and gradients divided."""

    name: Literal["zero2"] = Field("zero2", description="Optimizer states and gradients divided.")


class Zero2OffloadOptions(ZeroOptions):
    """ZeRO stage 2 whose optimizer states live and step in host RAM."""

    name: Literal["zero2_offload"] = Field("zero2_offload", description="As zero2, states kept in host RAM.")
    cpu_adam: CpuAdam = Field("auto", description=_CPU_ADAM_HELP)


class Zero3Options(ZeroOptions):
    """ZeRO stage 3: parameters divided too, gathered for the module that computes."""

    name: Literal["zero3"] = Field("zero3", description="Parameters divided too.")
    stage3_prefetch_bucket_size: int = Field(
        50_000_000, ge=0, description="Weight elements gathered ahead of their use."
    )
    stage3_param_persistence_threshold: int = Field(
        100_000, ge=0, description="Parameters with fewer elements stay whole on every card."
    )
    stage3_max_live_parameters: int = Field(
        1_000_000_000, ge=1, description="Most gathered elements at once before they are freed again."
    )
    sub_group_size: int = Field(1_000_000_000, ge=1, description="Elements that one optimizer step takes.")


class Zero3OffloadOptions(Zero3Options):
    """ZeRO stage 3 with parameters and states in host RAM."""

    name: Literal["zero3_offload"] = Field(  # type: ignore[assignment]
        "zero3_offload", description="As zero3, parameters and states kept in host RAM."
    )
    cpu_adam: CpuAdam = Field("auto", description=_CPU_ADAM_HELP)


class Zero3NvmeOptions(Zero3Options):
    """ZeRO-Infinity: parameters and states on a local NVMe disk."""

    name: Literal["zero3_nvme"] = Field(  # type: ignore[assignment]
        "zero3_nvme", description="As zero3, parameters and states kept on a disk."
    )
    cpu_adam: CpuAdam = Field("auto", description=_CPU_ADAM_HELP)
    nvme_path: str = Field("nvme_offload", min_length=1, description="Folder on a fast local disk.")
    sub_group_size: int = Field(
        100_000_000, ge=1, description="Elements that one optimizer step takes; each is read and written."
    )
    stage3_max_reuse_distance: int = Field(
        0, ge=0, description="A weight needed again within so many elements stays, and keeps its buffer."
    )


def _owned_by_the_recipe() -> dict[str, Any]:
    return {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
    }


def _ds_config(stage: int, offload: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    def config(options: ZeroOptions) -> dict[str, Any]:
        zero = {"stage": stage, **options.model_dump(exclude=NOT_IN_THE_JSON), **offload(options)}
        if stage == 3:
            zero["stage3_gather_16bit_weights_on_model_save"] = True  # else an export holds placeholders
        # torch's AdamW steps on the CPU too, where DeepSpeed's own is not compiled
        forced = {"zero_force_ds_cpu_optimizer": False} if "offload_optimizer" in zero else {}
        return {**_owned_by_the_recipe(), **forced, "zero_optimization": zero}

    return config


def _nothing(options: ZeroOptions) -> dict[str, Any]:
    return {}


def _states_to_cpu(options: ZeroOptions) -> dict[str, Any]:
    return {"offload_optimizer": {"device": "cpu", "pin_memory": True}}


def _all_to_cpu(options: ZeroOptions) -> dict[str, Any]:
    return {**_states_to_cpu(options), "offload_param": {"device": "cpu", "pin_memory": True}}


def _all_to_nvme(options: Zero3NvmeOptions) -> dict[str, Any]:
    place = {"device": "nvme", "nvme_path": options.nvme_path, "pin_memory": True}
    return {"offload_optimizer": place, "offload_param": dict(place)}


def _accelerate_config(name: str) -> Callable[[int], dict[str, Any]]:
    def config(num_processes: int) -> dict[str, Any]:
        """Flat DeepSpeed keys beside `deepspeed_config_file` make Accelerate refuse: the JSON has them."""
        block = {"deepspeed_config_file": f"ds_configs/{name}.json", "zero3_init_flag": False}
        return accelerate_config("DEEPSPEED", num_processes, deepspeed_config=block)

    return config


def _register(
    name: str,
    summary: str,
    *,
    stage: int,
    options: type[ZeroOptions],
    offload: Callable[[Any], dict[str, Any]] = _nothing,
    connect: str = CONNECT,
) -> None:
    leaves = offload is not _nothing
    sharding = ShardingFacts(
        optimizer_states=True,
        gradients=stage >= 2,
        parameters=stage >= 3,
        offload_optimizer=leaves,
        offload_parameters=leaves and stage == 3,
    )
    backend = Backend(
        name=name,
        summary=summary,
        options=options,
        # accelerate first: it starts sooner, respects CUDA_VISIBLE_DEVICES and passes signals on
        starters=("accelerate", "deepspeed", "torchrun", "python"),
        sharding=sharding,
        accelerate_config=_accelerate_config(name),
        ds_config=_ds_config(stage, offload),
        connect=connect,
        needs_group=True,
    )
    BACKENDS.register(name, backend)


def resolve(
    config: dict[str, Any],
    *,
    step: StepSettings,
    precision: str,
    max_grad_norm: float,
    options: BackendOptions | None = None,
) -> dict[str, Any]:
    """The JSON with every `auto` of the recipe's facts replaced by the plan's value.

    transformers' Trainer knows `auto` for buckets too: those become the backend's own options.
    """
    resolved = copy.deepcopy(config)
    values = {
        "train_batch_size": step.micro_batch_size * step.accumulation_steps * step.num_ranks,
        "train_micro_batch_size_per_gpu": step.micro_batch_size,
        "gradient_accumulation_steps": step.accumulation_steps,
        "gradient_clipping": max_grad_norm,
    }
    for key, value in values.items():
        if resolved.get(key, "auto") == "auto":
            resolved[key] = value
    for block in ("bf16", "fp16"):
        if resolved.get(block, {}).get("enabled") == "auto":
            resolved[block]["enabled"] = precision == block
    zero = resolved.get("zero_optimization")
    if isinstance(zero, dict):
        resolved["zero_optimization"] = _without_auto(zero, options)
    return resolved


def _without_auto(zero: dict[str, Any], options: BackendOptions | None) -> dict[str, Any]:
    """The block with the options' values for `auto`; what they do not know is left to DeepSpeed."""
    known = options.model_dump(exclude=NOT_IN_THE_JSON) if options else {}
    return {
        key: known[key] if value == "auto" else value
        for key, value in zero.items()
        if value != "auto" or key in known
    }


_register("zero1", "DeepSpeed ZeRO-1: optimizer states divided", stage=1, options=Zero1Options)
_register("zero2", "DeepSpeed ZeRO-2: states and gradients divided", stage=2, options=Zero2Options)
_register(
    "zero2_offload",
    "DeepSpeed ZeRO-2 with the optimizer in host RAM",
    stage=2,
    options=Zero2OffloadOptions,
    offload=_states_to_cpu,
)
_register(
    "zero3",
    "DeepSpeed ZeRO-3: parameters divided too",
    stage=3,
    options=Zero3Options,
    connect=CONNECT_3,
)
_register(
    "zero3_offload",
    "DeepSpeed ZeRO-3 with parameters and optimizer in host RAM",
    stage=3,
    options=Zero3OffloadOptions,
    offload=_all_to_cpu,
    connect=CONNECT_3,
)
_register(
    "zero3_nvme",
    "DeepSpeed ZeRO-Infinity: parameters and optimizer on a local disk",
    stage=3,
    options=Zero3NvmeOptions,
    offload=_all_to_nvme,
    connect=CONNECT_NVME,
)

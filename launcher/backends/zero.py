"""DeepSpeed ZeRO: optimizer states, then gradients, then parameters divided over the ranks.

Every stage is one registration; what the recipe owns (batch, clipping, precision) is written
as `auto` and resolved from the plan by `resolve`.
"""

import copy
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions
from launcher.facts import ShardingFacts, StepSettings

CONNECT = "launcher.backends.zero_torch:connect"


class ZeroOptions(BackendOptions):
    """Communication buffers. DeepSpeed's own 5e8 elements would take gigabytes of a 24 GB card."""

    reduce_bucket_size: int = Field(50_000_000, ge=1, description="Gradient elements summed at once.")
    allgather_bucket_size: int = Field(50_000_000, ge=1, description="Weight elements gathered at once.")
    overlap_comm: bool = Field(True, description="Sum gradients during the backward pass; more buffers.")
    contiguous_gradients: bool = Field(True, description="Copy gradients into one buffer as they come.")


class Zero2Options(ZeroOptions):
    """ZeRO stage 2: optimizer states and gradients divided."""

    name: Literal["zero2"] = Field("zero2", description="Optimizer states and gradients divided.")


def _owned_by_the_recipe() -> dict[str, Any]:
    return {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
    }


def _ds_config(stage: int) -> Callable[[Any], dict[str, Any]]:
    def config(options: ZeroOptions) -> dict[str, Any]:
        zero = {"stage": stage, **options.model_dump(exclude={"name"})}
        return {**_owned_by_the_recipe(), "zero_optimization": zero}

    return config


def _accelerate_config(name: str) -> Callable[[int], dict[str, Any]]:
    def config(num_processes: int) -> dict[str, Any]:
        """Flat DeepSpeed keys beside `deepspeed_config_file` make Accelerate refuse: the JSON has them."""
        return {
            "compute_environment": "LOCAL_MACHINE",
            "distributed_type": "DEEPSPEED",
            "deepspeed_config": {
                "deepspeed_config_file": f"ds_configs/{name}.json",
                "zero3_init_flag": False,
            },
            "num_machines": 1,
            "num_processes": num_processes,
            "use_cpu": False,
        }

    return config


def _register(name: str, summary: str, *, stage: int, options: type[ZeroOptions]) -> None:
    sharding = ShardingFacts(optimizer_states=stage >= 1, gradients=stage >= 2, parameters=stage >= 3)
    backend = Backend(
        name=name,
        summary=summary,
        options=options,
        # accelerate first: it starts sooner, respects CUDA_VISIBLE_DEVICES and passes signals on
        starters=("accelerate", "deepspeed", "torchrun", "python"),
        sharding=sharding,
        accelerate_config=_accelerate_config(name),
        ds_config=_ds_config(stage),
        connect=CONNECT,
    )
    BACKENDS.register(name, backend)


def resolve(
    config: dict[str, Any], *, step: StepSettings, precision: str, max_grad_norm: float
) -> dict[str, Any]:
    """The JSON with every `auto` of the recipe's facts replaced by the plan's value."""
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
    return resolved


_register("zero2", "DeepSpeed ZeRO-2: states and gradients divided", stage=2, options=Zero2Options)

"""What every backend's options share, and where backends are registered."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from launcher.facts import ShardingFacts
from launcher.options import Options
from launcher.registry import Registry


class BackendOptions(Options):
    """Base of a backend's options. Each subclass narrows `name` to its own."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A way to spread one step over processes.

    `starters` are the commands that can start it, the preferred one first. `accelerate_config`
    maps a process count to an Accelerate YAML's content; `ds_config`, where the backend is
    DeepSpeed's, maps its options to a JSON's content with `auto` where the recipe owns the value.
    `connect` names the `module:function` that wraps the model (imports torch); `needs_group` asks for a
    process group even of one; `takes_all_cards` leaves every visible card to one process.
    """

    name: str
    summary: str
    options: type[BackendOptions]
    starters: tuple[str, ...]
    sharding: ShardingFacts
    accelerate_config: Callable[[int], dict[str, Any]]
    ds_config: Callable[[Any], dict[str, Any]] | None = None
    connect: str
    needs_group: bool = False
    max_ranks: int | None = None
    takes_all_cards: bool = False


_OTHER_NAMES = {
    **dict.fromkeys(("ddp", "dp", "distributed", "torchrun", "data_parallel", "dataparallel"), "multi_gpu"),
    **dict.fromkeys(("none", "no", "cpu", "gpu", "single", "plain", "python", "accelerate"), "single_gpu"),
    **dict.fromkeys(("deepspeed", "ds", "zero", "stage2", "deepspeed_zero2"), "zero2"),
    **dict.fromkeys(("stage1", "deepspeed_zero1"), "zero1"),
    **dict.fromkeys(("stage3", "deepspeed_zero3"), "zero3"),
    **dict.fromkeys(
        ("zero_offload", "zero2_cpu", "zero2_cpu_offload", "zero2_offload_optimizer"), "zero2_offload"
    ),
    **dict.fromkeys(("zero3_cpu", "zero3_cpu_offload", "zero3_offload_all"), "zero3_offload"),
    **dict.fromkeys(("zero_infinity", "nvme", "zero3_infinity"), "zero3_nvme"),
    **dict.fromkeys(("fsdp", "fsdp1", "full_shard", "fully_shard"), "fsdp2"),
    **dict.fromkeys(("fsdp_offload", "fsdp1_offload", "fsdp_cpu"), "fsdp2_offload"),
    **dict.fromkeys(("pipeline", "pp", "naive", "device_map", "tp", "tensor_parallel"), "model_parallel"),
}
BACKENDS: Registry[Backend] = Registry("backend", "launcher.backends", _OTHER_NAMES)


def accelerate_config(kind: str, num_processes: int, **block: dict[str, Any]) -> dict[str, Any]:
    """An Accelerate YAML's content: `kind` is its distributed_type, `block` that type's own section.

    No precision and no `use_cpu: true`: the recipe owns the one, the other would fall back to DDP.
    """
    head = {"compute_environment": "LOCAL_MACHINE", "distributed_type": kind}
    return {**head, **block, "num_machines": 1, "num_processes": num_processes, "use_cpu": False}

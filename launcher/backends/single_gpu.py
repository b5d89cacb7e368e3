"""One process, one card (or the CPU): nothing is divided."""

from typing import Any, Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions
from launcher.facts import ShardingFacts


class SingleGpuOptions(BackendOptions):
    """Nothing to choose: one process does the whole step."""

    name: Literal["single_gpu"] = Field("single_gpu", description="One process, one card.")


def _accelerate_config(num_processes: int) -> dict[str, Any]:
    return {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "NO",
        "num_machines": 1,
        "num_processes": 1,
        "use_cpu": False,
    }


BACKENDS.register(
    "single_gpu",
    Backend(
        name="single_gpu",
        summary="one process, one card or the CPU",
        options=SingleGpuOptions,
        starters=("accelerate", "python"),
        sharding=ShardingFacts(optimizer_states=False, gradients=False, parameters=False),
        accelerate_config=_accelerate_config,
        connect="launcher.backends.single_gpu_torch:connect",
        max_ranks=1,
    ),
)

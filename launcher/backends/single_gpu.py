"""One process, one card (or the CPU): nothing is divided."""

from typing import Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions, accelerate_config
from launcher.facts import ShardingFacts


class SingleGpuOptions(BackendOptions):
    """Nothing to choose: one process does the whole step."""

    name: Literal["single_gpu"] = Field("single_gpu", description="One process, one card.")


BACKENDS.register(
    "single_gpu",
    Backend(
        name="single_gpu",
        summary="one process, one card or the CPU",
        options=SingleGpuOptions,
        starters=("accelerate", "python"),
        sharding=ShardingFacts(optimizer_states=False, gradients=False, parameters=False),
        accelerate_config=lambda num_processes: accelerate_config("NO", 1),
        connect="launcher.backends.single_gpu_torch:connect",
        max_ranks=1,
    ),
)

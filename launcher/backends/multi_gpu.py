"""DistributedDataParallel: every card holds the whole model and sees its share of the rows."""

from typing import Any, Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions, accelerate_config
from launcher.facts import ShardingFacts


class MultiGpuOptions(BackendOptions):
    """How gradients travel between the cards."""

    name: Literal["multi_gpu"] = Field("multi_gpu", description="The whole model on every card.")
    bucket_cap_mb: int = Field(25, ge=1, description="Gradients are summed in pieces of this many MiB.")


def _accelerate_config(num_processes: int) -> dict[str, Any]:
    """`MULTI_GPU`, never `MULTI_CPU`: the latter starts one process whatever the count says."""
    return accelerate_config("MULTI_GPU", num_processes)


BACKENDS.register(
    "multi_gpu",
    Backend(
        name="multi_gpu",
        summary="DDP: the whole model on every card, rows divided",
        options=MultiGpuOptions,
        starters=("accelerate", "torchrun"),
        sharding=ShardingFacts(optimizer_states=False, gradients=False, parameters=False),
        accelerate_config=_accelerate_config,
        connect="launcher.backends.multi_gpu_torch:connect",
    ),
)

"""Layers laid over several cards in one process: the cards compute one after another, memory adds up."""

from typing import Any, Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions
from launcher.facts import ShardingFacts


class ModelParallelOptions(BackendOptions):
    """Nothing to choose: every visible card takes its share of the layers."""

    name: Literal["model_parallel"] = Field("model_parallel", description="Layers over the visible cards.")


def _accelerate_config(num_processes: int) -> dict[str, Any]:
    return {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "NO",
        "num_machines": 1,
        "num_processes": 1,
        "use_cpu": False,
    }


BACKENDS.register(
    "model_parallel",
    Backend(
        name="model_parallel",
        summary="one process, layers over the visible cards, one card working at a time",
        options=ModelParallelOptions,
        starters=("accelerate", "python"),
        sharding=ShardingFacts(optimizer_states=False, gradients=False, parameters=False),
        accelerate_config=_accelerate_config,
        connect="launcher.backends.model_parallel_torch:connect",
        max_ranks=1,
        takes_all_cards=True,
    ),
)

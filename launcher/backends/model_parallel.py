"""Layers laid over several cards in one process: the cards compute one after another, memory adds up."""

from typing import Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions, accelerate_config
from launcher.facts import ShardingFacts


class ModelParallelOptions(BackendOptions):
    """Nothing to choose: every visible card takes its share of the layers."""

    name: Literal["model_parallel"] = Field("model_parallel", description="Layers over the visible cards.")


BACKENDS.register(
    "model_parallel",
    Backend(
        name="model_parallel",
        summary="one process, layers over the visible cards, one card working at a time",
        options=ModelParallelOptions,
        starters=("accelerate", "python"),
        sharding=ShardingFacts(optimizer_states=False, gradients=False, parameters=False),
        accelerate_config=lambda num_processes: accelerate_config("NO", 1),
        connect="launcher.backends.model_parallel_torch:connect",
        max_ranks=1,
        takes_all_cards=True,
    ),
)

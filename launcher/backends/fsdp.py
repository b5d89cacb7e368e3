"""FSDP2: parameters, gradients and optimizer states divided block by block; with offload they wait in RAM."""

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from launcher.backends.options import BACKENDS, Backend, BackendOptions, accelerate_config
from launcher.facts import ShardingFacts

CONNECT = "launcher.backends.fsdp_torch:connect"


class FsdpOptions(BackendOptions):
    """What is sharded as one unit."""

    wrap_classes: tuple[str, ...] = Field(
        (), description="Class names of the blocks; empty: as the model itself says."
    )
    reshard_after_forward: bool = Field(
        True, description="Free gathered weights after a block's forward pass; they are gathered again."
    )


class Fsdp2Options(FsdpOptions):
    """FSDP2 with everything on the card."""

    name: Literal["fsdp2"] = Field("fsdp2", description="Parameters, gradients and states divided.")


class Fsdp2OffloadOptions(FsdpOptions):
    """FSDP2 whose pieces live in host RAM and visit the card block by block."""

    name: Literal["fsdp2_offload"] = Field("fsdp2_offload", description="As fsdp2, pieces kept in host RAM.")


def _accelerate_config(*, offload: bool) -> Callable[[int], dict[str, Any]]:
    def config(num_processes: int) -> dict[str, Any]:
        """`fsdp_version` is always written: Accelerate's default is 1."""
        block = {
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_reshard_after_forward": True,
            "fsdp_offload_params": offload,
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
            "fsdp_cpu_ram_efficient_loading": False,
        }
        return accelerate_config("FSDP", num_processes, fsdp_config=block)

    return config


def _register(name: str, summary: str, *, options: type[FsdpOptions], offload: bool) -> None:
    sharding = ShardingFacts(
        optimizer_states=True,
        gradients=True,
        parameters=True,
        offload_optimizer=offload,
        offload_parameters=offload,
    )
    backend = Backend(
        name=name,
        summary=summary,
        options=options,
        starters=("accelerate", "torchrun", "python"),
        sharding=sharding,
        accelerate_config=_accelerate_config(offload=offload),
        connect=CONNECT,
        needs_group=True,
    )
    BACKENDS.register(name, backend)


_register("fsdp2", "FSDP2: everything divided, block by block", options=Fsdp2Options, offload=False)
_register("fsdp2_offload", "FSDP2 with the pieces in host RAM", options=Fsdp2OffloadOptions, offload=True)

"""Bottleneck adapters: a small residual MLP behind each sublayer (Houlsby 2019, arXiv:1902.00751)."""

from typing import Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method

Placement = Literal["houlsby", "pfeiffer"]
Activation = Literal["gelu", "relu", "silu", "tanh"]


class BottleneckOptions(AdapterOptions):
    """Width and place of the adapters."""

    method: Literal["bottleneck"] = Field(
        "bottleneck", description="Train a small MLP behind each sublayer of frozen blocks."
    )
    bottleneck_size: int = Field(64, ge=1, description="Width between the adapter's two layers.")
    bottleneck_placement: Placement = Field(
        "houlsby", description="houlsby: behind attention and MLP; pfeiffer: behind the MLP only."
    )
    bottleneck_activation: Activation = Field("gelu", description="What stands between the two layers.")
    bottleneck_dropout: float = Field(0.0, ge=0, lt=1, description="Dropout behind the activation.")


METHODS.register(
    "bottleneck",
    Method(
        name="bottleneck",
        summary="small MLPs behind the sublayers of frozen blocks",
        options=BottleneckOptions,
        trains_base=False,
        apply="launcher.adapters.bottleneck_torch:apply",
    ),
)

"""IA3: learned factors on keys, values and the MLP's inner activations (Liu 2022, arXiv:2205.05638)."""

from typing import Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method


class Ia3Options(AdapterOptions):
    """Nothing to choose: keys, values and the MLP's last layer, found in the model."""

    method: Literal["ia3"] = Field("ia3", description="Train factors on keys, values and MLP activations.")


METHODS.register(
    "ia3",
    Method(
        name="ia3",
        summary="factors on keys, values and MLP activations of frozen blocks",
        options=Ia3Options,
        trains_base=False,
        apply="launcher.adapters.ia3_torch:apply",
    ),
)

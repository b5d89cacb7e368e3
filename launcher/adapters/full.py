"""Full fine-tuning: every weight of the model is trained."""

from typing import Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method


class FullOptions(AdapterOptions):
    """Nothing to choose: the whole model trains."""

    method: Literal["full"] = Field("full", description="Train every weight.")


METHODS.register(
    "full",
    Method(
        name="full",
        summary="every weight trains",
        options=FullOptions,
        trains_base=True,
        apply="launcher.adapters.full_torch:apply",
    ),
)

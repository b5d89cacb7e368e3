"""P-tuning: vectors in front of the input, made by a small trained network (Liu 2021, arXiv:2103.10385)."""

from typing import Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method


class PTuningOptions(AdapterOptions):
    """How many vectors, and the network that makes them."""

    method: Literal["p_tuning"] = Field(
        "p_tuning", description="Train a small network that makes vectors in front of the input."
    )
    num_virtual_tokens: int = Field(20, ge=1, description="Trained vectors in front of every row.")
    encoder_hidden_size: int = Field(128, ge=1, description="Width of the network that makes the vectors.")


METHODS.register(
    "p_tuning",
    Method(
        name="p_tuning",
        summary="vectors in front of the input, made by a trained network",
        options=PTuningOptions,
        trains_base=False,
        apply="launcher.adapters.virtual_tokens_torch:apply",
        before_save="launcher.adapters.virtual_tokens_torch:restore_encoder",
        adds_tokens=True,
    ),
)

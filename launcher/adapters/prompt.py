"""Prompt tuning: trained vectors in front of the input's embeddings (Lester 2021, arXiv:2104.08691)."""

from typing import Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method


class PromptOptions(AdapterOptions):
    """How many vectors."""

    method: Literal["prompt"] = Field("prompt", description="Train vectors in front of the input.")
    num_virtual_tokens: int = Field(20, ge=1, description="Trained vectors in front of every row.")


METHODS.register(
    "prompt",
    Method(
        name="prompt",
        summary="trained vectors in front of the input of a frozen model",
        options=PromptOptions,
        trains_base=False,
        apply="launcher.adapters.virtual_tokens_torch:apply",
        before_save="launcher.adapters.virtual_tokens_torch:restore_encoder",
        adds_tokens=True,
    ),
)

"""Prefix tuning: trained keys and values in front of every layer's own (Li 2021, arXiv:2101.00190)."""

from typing import Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method
from launcher.errors import BadValue, Problem


class PrefixOptions(AdapterOptions):
    """How many keys and values, and whether a network makes them."""

    method: Literal["prefix"] = Field(
        "prefix", description="Train keys and values in front of every layer's own."
    )
    num_virtual_tokens: int = Field(20, ge=1, description="Trained keys and values of each layer.")
    prefix_projection: bool = Field(
        False, description="Make them by a two-layer network from one embedding; more to train."
    )
    encoder_hidden_size: int = Field(128, ge=1, description="Width of that network.")


METHODS.register(
    "prefix",
    Method(
        name="prefix",
        summary="trained keys and values in front of every layer's own",
        options=PrefixOptions,
        trains_base=False,
        apply="launcher.adapters.virtual_tokens_torch:apply",
        before_save="launcher.adapters.virtual_tokens_torch:restore_encoder",
        needs_cache=True,
    ),
)


def needs_decoder(kind: str) -> BadValue:
    """The refusal of a model that takes no keys and values from before."""
    return BadValue(
        Problem(
            where="adapter.method",
            what=f"prefix reaches attention through a key-value cache, and {kind} takes none here",
            right="prompt, p_tuning, bottleneck, ia3 or lora; prefix with a decoder",
            type="adapter.method=p_tuning, or adapter.method=lora",
        )
    )

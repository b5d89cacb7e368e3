"""LoRA: low-rank pairs beside frozen linear layers (Hu et al. 2021, arXiv:2106.09685)."""

from typing import Annotated, Literal

from pydantic import Field

from launcher.adapters.options import METHODS, AdapterOptions, Method

Targets = Literal["attention", "mlp", "all-linear"] | tuple[str, ...]
Dropout = Annotated[float, Field(ge=0, lt=1)]


class LoraOptions(AdapterOptions):
    """Rank, scale and place of the low-rank pairs."""

    method: Literal["lora"] = Field("lora", description="Train low-rank pairs beside frozen linear layers.")
    lora_r: int = Field(8, ge=1, description="Rank of the pairs.")
    lora_alpha: float = Field(16, gt=0, description="The pairs' output is scaled by lora_alpha / lora_r.")
    lora_dropout: Dropout = Field(0.0, description="Dropout in front of the pairs.")
    lora_target_modules: Targets = Field("attention", description="An intent, or names of linear layers.")
    use_rslora: bool = Field(False, description="Scale by lora_alpha / sqrt(lora_r): steady at high ranks.")
    loraplus_lr_ratio: float | None = Field(
        None, ge=1, description="Rate of each pair's second matrix over that of the first (LoRA+)."
    )
    use_dora: bool = Field(False, description="Train the weights' lengths beside the pairs (DoRA).")


METHODS.register(
    "lora",
    Method(
        name="lora",
        summary="low-rank pairs beside frozen linear layers",
        options=LoraOptions,
        trains_base=False,
        apply="launcher.adapters.lora_torch:apply",
    ),
)

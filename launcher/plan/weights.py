"""The type that weights are held in, by method and precision."""

from launcher.adapters.options import METHODS
from launcher.recipe.schema import Recipe

_OF_PRECISION = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def weights_dtype(recipe: Recipe, precision: str) -> tuple[str, str]:
    """`float32`, `bfloat16` or `float16`, and why."""
    trains_base = METHODS.get(recipe.adapter.method).trains_base
    if recipe.model.dtype != "auto":
        risk = (
            ", small updates may be rounded away; auto: 8 bytes more a trained parameter"
            if trains_base and recipe.model.dtype != "float32"
            else ""
        )
        return recipe.model.dtype, f"asked for{risk}"
    if trains_base:
        return "float32", f"trained weights stay fp32, computed in {precision}"
    return _OF_PRECISION[precision], "frozen weights are held in the compute type, the adapter in fp32"

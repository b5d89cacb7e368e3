"""What a recipe says about numbers: half weights that are trained, options that only fp16 has."""

from typing import Any

from launcher.recipe.load import load_recipe


def notices(write: Any, *overrides: str) -> str:
    return "\n".join(load_recipe(str(write()), list(overrides)).notices)


def test_b073_trained_bf16_weights_are_warned_of_with_the_price_before_anything_starts(write: Any) -> None:
    said = notices(write, "model.dtype=bfloat16")
    assert "model.dtype: warning" in said and "8 more bytes a trained parameter" in said
    assert "model.dtype" not in notices(write, "model.dtype=bfloat16", "adapter=lora", "task=causal_lm")
    assert "model.dtype" not in notices(write, "model.dtype=float32")


def test_options_of_half_precision_have_no_effect_in_fp32(write: Any) -> None:
    said = notices(write, "precision=fp32", "min_loss_scale=32", "fp32_modules=classifier")
    assert "training.min_loss_scale: has no effect" in said
    assert "training.fp32_modules: has no effect" in said
    assert "no effect" not in notices(write, "precision=fp16", "min_loss_scale=32")
    # A resolved recipe writes every key.
    assert "min_loss_scale" not in notices(write, "precision=fp32", "min_loss_scale=16")

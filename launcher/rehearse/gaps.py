"""What a rehearsal on CPU processes cannot show, said for this recipe."""

from collections.abc import Iterator

from launcher.recipe.schema import Recipe
from launcher.rehearse.shrink import precision_of
from launcher.rehearse.verdict import Verdict


def not_checked(recipe: Recipe, verdict: Verdict) -> list[str]:
    """One line each, the general ones first."""
    return [
        "speed, and the memory of the real model on its card",
        "GPU kernels (attention, fused optimizer) and NCCL: the ranks talk through gloo here",
        *_precision(recipe, verdict),
        *_own(recipe, verdict),
    ]


def _precision(recipe: Recipe, verdict: Verdict) -> Iterator[str]:
    if verdict.failed_stage == "shrink":  # the card may not have it at all
        return
    precision = precision_of(recipe)
    if precision == "auto":
        yield "the precision that auto takes on your card: the recipe names none (hardware.gpu)"
    if precision == "fp16":
        yield "fp16's range on the card: the loss scale is real here, the real model's activations are not"
    if precision in ("bf16", "bf16-emulated"):
        yield "bf16 units: the CPU rounds to bf16, it may add up in another order"
    if recipe.model.attn_implementation == "flash_attention_2":
        yield "flash_attention_2: it exists for GPUs only, the default attention ran"


def _own(recipe: Recipe, verdict: Verdict) -> Iterator[str]:
    if "not here" in verdict.rows:
        source = f" ({recipe.data.source})" if recipe.data.source else ""
        yield f"your data: {recipe.data.train_file} is not here{source}"
    if verdict.tokenizer.startswith("a stand-in"):
        yield "the model's own tokenizer: row lengths and the vocabulary's size are a stand-in's"
    yield "the real weights, and whether a loss on them falls"

"""Logits of a few texts, computed the same way for the reference and for what an export reloads to."""

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from launcher.adapters.options import METHODS
from launcher.models.load_torch import load_model, load_tokenizer
from launcher.recipe.schema import Recipe
from launcher.registry import load_attribute


@torch.inference_mode()
def logits(model: Any, tokenizer: Any, texts: Sequence[str], max_length: int) -> list[Tensor]:
    """One tensor a text, fp32 arithmetic whatever the weights were kept in, no padding."""
    model = model.float().eval()
    found = []
    for text in texts:
        ids = torch.tensor([tokenizer(text, truncation=True, max_length=max_length)["input_ids"]])
        found.append(model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0].clone())
    return found


def trained_model(recipe: Recipe, checkpoint: Path | None, labels: tuple[str, ...], dtype: str) -> Any:
    """The model from its base and a checkpoint's tensors, without the exported folder; None: untrained."""
    tokenizer = load_tokenizer(recipe.model)
    base = load_model(
        recipe.model, task=recipe.task, dtype=dtype, label_names=labels, pad_token_id=tokenizer.pad_token_id
    )
    apply = load_attribute(METHODS.get(recipe.adapter.method).apply)
    model = apply(base, recipe.adapter, task=recipe.task)
    if checkpoint is not None:
        held = dict(_weights(checkpoint))
        odd = model.load_state_dict(held, strict=False).unexpected_keys
        assert not odd, f"the checkpoint holds tensors that the model has not: {odd}"
    return model


def reference(
    recipe: Recipe, hidden: Path, name: str, texts: Sequence[str]
) -> tuple[list[Tensor], list[Tensor]]:
    """Logits of the trained model, put together from base and checkpoint, and of the untrained one.

    `hidden` holds `runs/<name>` and, where it is not in its own place, the base `model`.
    """
    run = hidden / "runs" / name
    if (base := hidden / "model").is_dir():
        model = recipe.model.model_copy(update={"model_name_or_path": str(base)})
        recipe = recipe.model_copy(update={"model": model})
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    facts = json.loads((run / "final" / "launcher.json").read_text(encoding="utf-8"))
    best = summary["best"]["step"] if recipe.training.load_best_model_at_end else None
    labels, dtype = tuple(facts["label_names"]), plan["weights_dtype"]
    tokenizer = load_tokenizer(recipe.model)
    found = []
    for checkpoint in (run / f"checkpoint-{best or summary['steps']}", None):
        torch.manual_seed(recipe.training.seed)  # as a rank does before it adds head and adapter
        with _quiet():
            built = trained_model(recipe, checkpoint, labels, dtype)
        found.append(logits(built, tokenizer, texts, recipe.data.most_tokens))
    return found[0], found[1]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what bitsandbytes and transformers say when PEFT is imported and used on a CPU."""
    logging.getLogger("bitsandbytes").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _weights(checkpoint: Path) -> Iterator[tuple[str, Tensor]]:
    for path in sorted(checkpoint.glob("state-*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 (no mapping)
                if key.endswith("/weight"):
                    yield key.removesuffix("/weight").removeprefix("model."), file.get_tensor(key)


def read(path: Path) -> list[Tensor]:
    """Logits that another process wrote, in the order of their texts."""
    return [tensor for _, tensor in sorted(load_file(path).items())]


def largest_difference(left: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    """The largest difference of two sets of logits, relative to the largest of the left ones."""
    if [each.shape for each in left] != [each.shape for each in right]:
        return float("inf")
    size = max(float(each.abs().max()) for each in left)
    return max(float((a - b).abs().max()) for a, b in zip(left, right, strict=True)) / max(size, 1e-12)

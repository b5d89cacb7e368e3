"""The names of a model's parameters, off its module tree on the meta device: before any weight is read."""

from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from launcher.models.load_torch import load_config
from launcher.models.options import ModelOptions

_AUTO: dict[str, Any] = {
    "classification": AutoModelForSequenceClassification,
    "causal_lm": AutoModelForCausalLM,
}


def parameter_names(options: ModelOptions, *, task: str, num_labels: int = 2) -> list[str]:
    """Every parameter's name in the model's order, tied ones once. Raises RecipeError as loading does."""
    config = load_config(options)
    if task == "classification":
        config.num_labels = num_labels
    with torch.device("meta"):
        model = _AUTO[task].from_config(config, trust_remote_code=options.trust_remote_code)
    return [name for name, _ in model.named_parameters()]

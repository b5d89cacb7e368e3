"""Models without weights, on the meta device, for tests that count parameters."""

from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers.utils import logging

from launcher.models.catalogue import Entry

AUTO = {"causal_lm": AutoModelForCausalLM, "classification": AutoModelForSequenceClassification}
DEPTH_NAMES = ("num_hidden_layers", "n_layer", "n_layers")
ENCODERS = {"bert", "roberta", "xlm-roberta", "distilbert", "electra", "deberta-v2", "modernbert"}
REMOTE = {"baichuan", "chatglm", "internlm2", "qwen"}


def own_task(model_type: str) -> str:
    """What the published count of an entry is counted with."""
    return "classification" if model_type in ENCODERS else "causal_lm"


def build(
    values: dict[str, Any], task: str, *, num_layers: int | None = None, num_labels: int = 2
) -> nn.Module:
    """The real class with the real configuration, optionally less deep. ValueError: it has no such class."""
    logging.set_verbosity_error()
    config = AutoConfig.for_model(**(values | {"num_labels": num_labels}))
    for name in DEPTH_NAMES:
        if num_layers is not None and name in config.__dict__:
            setattr(config, name, num_layers)
    if num_layers is not None and getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:num_layers]
    with torch.device("meta"):
        model: nn.Module = AUTO[task].from_config(config)
    return model


def has_class(values: dict[str, Any], task: str) -> bool:
    """Whether transformers has a class for that task."""
    return type(AutoConfig.for_model(values["model_type"])) in AUTO[task]._model_mapping


def label(entry: Entry) -> str:
    """A short name for a test."""
    return entry.ids[0].rsplit("/", 1)[-1]


def count(module: nn.Module) -> int:
    """Elements, shared ones once."""
    return sum(parameter.numel() for parameter in module.parameters())

"""Applies IA3 through PEFT, on the layers found in the model's own tree."""

from peft import IA3Config
from torch import nn

from launcher.adapters.options import AdapterOptions
from launcher.adapters.peft_torch import TASK_TYPES, linear_names, wrap
from launcher.adapters.targets import keys_and_values, outputs


def apply(model: nn.Module, options: AdapterOptions, *, task: str) -> nn.Module:
    """The PEFT model: factors on what keys and values put out, and on what the MLP's last layer takes in."""
    names = linear_names(model)
    inner = outputs(names, attention=False, mlp=True)
    config = IA3Config(
        task_type=TASK_TYPES[task],
        target_modules=[*keys_and_values(names), *inner],
        feedforward_modules=inner,
    )
    return wrap(model, config)

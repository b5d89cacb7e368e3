"""Applies full fine-tuning: nothing is frozen."""

from torch import nn

from launcher.adapters.options import AdapterOptions


def apply(model: nn.Module, options: AdapterOptions, *, task: str) -> nn.Module:
    """The model as it is, every weight trainable."""
    assert options.method == "full" and task
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return model

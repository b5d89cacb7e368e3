"""Applies bottleneck adapters behind the sublayers of frozen blocks."""

from torch import nn

from launcher.adapters.bottleneck import BottleneckOptions
from launcher.adapters.bottleneck_peft_torch import BottleneckConfig, register
from launcher.adapters.options import AdapterOptions
from launcher.adapters.peft_torch import TASK_TYPES, linear_names, wrap
from launcher.adapters.targets import outputs


def apply(model: nn.Module, options: AdapterOptions, *, task: str) -> nn.Module:
    """The PEFT model: an adapter behind each block's MLP, and behind its attention (Houlsby)."""
    assert isinstance(options, BottleneckOptions)
    register()
    behind_attention = options.bottleneck_placement == "houlsby"
    config = BottleneckConfig(
        task_type=TASK_TYPES[task],
        target_modules=outputs(linear_names(model), attention=behind_attention, mlp=True),
        bottleneck_size=options.bottleneck_size,
        activation=options.bottleneck_activation,
        dropout=options.bottleneck_dropout,
    )
    return wrap(model, config)

"""Applies LoRA through PEFT: frozen base, fp32 pairs, a new classification head trained whole."""

from peft import LoraConfig
from torch import nn

from launcher.adapters.lora import LoraOptions
from launcher.adapters.options import AdapterOptions
from launcher.adapters.peft_torch import TASK_TYPES, linear_names, wrap
from launcher.adapters.targets import resolve_targets


def apply(model: nn.Module, options: AdapterOptions, *, task: str) -> nn.Module:
    """The PEFT model. Raises RecipeError where the targets do not exist in this architecture."""
    assert isinstance(options, LoraOptions)
    config = LoraConfig(
        task_type=TASK_TYPES[task],
        r=options.lora_r,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        target_modules=resolve_targets(options.lora_target_modules, linear_names(model)),
        use_rslora=options.use_rslora,
        use_dora=options.use_dora,
        bias="none",
    )
    return wrap(model, config)

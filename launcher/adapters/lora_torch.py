"""Applies LoRA through PEFT: frozen base, fp32 pairs, a new classification head trained whole."""

from peft import LoraConfig, get_peft_model
from torch import nn
from transformers.pytorch_utils import Conv1D

from launcher.adapters.lora import LoraOptions
from launcher.adapters.options import AdapterOptions
from launcher.adapters.targets import resolve_targets

_TASK_TYPES = {"classification": "SEQ_CLS", "causal_lm": "CAUSAL_LM"}


def linear_names(model: nn.Module) -> list[str]:
    """Names of the linear leaves (GPT-2's Conv1D included), in the model's order."""
    return [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]


def apply(model: nn.Module, options: AdapterOptions, *, task: str) -> nn.Module:
    """The PEFT model. Raises RecipeError where the targets do not exist in this architecture.

    The pairs and the saved head are fp32 whatever the base's type (PEFT's `autocast_adapter_dtype`),
    so that small updates are not rounded away.
    """
    assert isinstance(options, LoraOptions)
    config = LoraConfig(
        task_type=_TASK_TYPES[task],
        r=options.lora_r,
        lora_alpha=options.lora_alpha,
        lora_dropout=options.lora_dropout,
        target_modules=resolve_targets(options.lora_target_modules, linear_names(model)),
        bias="none",
    )
    wrapped: nn.Module = get_peft_model(model, config)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return wrapped

"""Applies prompt tuning, P-tuning and prefix tuning through PEFT."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from peft import (
    PeftConfig,
    PrefixEncoder,
    PrefixTuningConfig,
    PromptEmbedding,
    PromptEncoder,
    PromptEncoderConfig,
    PromptTuningConfig,
)
from torch import Tensor, nn

from launcher.adapters.options import AdapterOptions
from launcher.adapters.p_tuning import PTuningOptions
from launcher.adapters.peft_torch import TASK_TYPES, wrap
from launcher.adapters.prefix import PrefixOptions, needs_decoder
from launcher.adapters.prompt import PromptOptions


def _config(options: AdapterOptions, model: Any, task: str) -> PeftConfig:
    kind = TASK_TYPES[task]
    if isinstance(options, PrefixOptions):
        return PrefixTuningConfig(
            task_type=kind,
            num_virtual_tokens=options.num_virtual_tokens,
            prefix_projection=options.prefix_projection,
            encoder_hidden_size=options.encoder_hidden_size if options.prefix_projection else None,
        )
    sizes = _sizes(model)
    if isinstance(options, PTuningOptions):
        return PromptEncoderConfig(
            task_type=kind,
            num_virtual_tokens=options.num_virtual_tokens,
            encoder_hidden_size=options.encoder_hidden_size,
            **sizes,
        )
    assert isinstance(options, PromptOptions)
    return PromptTuningConfig(task_type=kind, num_virtual_tokens=options.num_virtual_tokens, **sizes)


def _sizes(model: Any) -> dict[str, int]:
    """What PEFT would read off the configuration, by names that not every family has.

    The vectors stand among embeddings, which are narrower than the blocks in some models.
    """
    config = model.config
    return {
        "token_dim": int(model.get_input_embeddings().weight.shape[1]),
        "num_layers": int(config.num_hidden_layers),
        "num_attention_heads": int(config.num_attention_heads),
    }


def apply(model: nn.Module, options: AdapterOptions, *, task: str) -> nn.Module:
    """The PEFT model: only the vectors (or what makes them) train, and a classifier's new head.

    Raises BadValue for prefix tuning where the model takes no keys and values from before.
    """
    if isinstance(options, PrefixOptions):
        _require_cache(model)
    wrapped = wrap(model, _config(options, model, task))
    if not isinstance(options, PTuningOptions):  # whose network gives small vectors by itself
        _start_small(wrapped, getattr(getattr(model, "config", None), "initializer_range", None) or 0.02)
    return wrapped


def _start_small(model: Any, scale: float) -> None:
    """Scale vectors that PEFT drew from N(0, 1) to the spread of the model's own new weights.

    So large they drown the text: SmolLM2-135M with 20 prefix vectors began at a loss of 11.0 instead of 1.7.
    """
    encoder = model.prompt_encoder[model.active_adapter]
    last = encoder.transform[-1] if getattr(encoder, "prefix_projection", False) else encoder.embedding
    with torch.no_grad():
        for parameter in last.parameters():
            parameter.mul_(scale)


def _require_cache(model: nn.Module) -> None:
    """PEFT says so only at the first forward pass."""
    taken = inspect.signature(model.forward).parameters
    if "past_key_values" not in taken and "cache" not in taken:  # its name from transformers 5.24 on
        kind = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
        raise needs_decoder(kind)


def restore_encoder(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put a whole encoder into the place of one that a backend may have divided.

    PEFT saves what the encoder puts out, not its weights, so it has to run once, on one rank.
    """
    prompted: Any = model
    start = f"prompt_encoder.{prompted.active_adapter}."
    encoder = _encoder(prompted.active_peft_config)
    own = {name.removeprefix(start): tensor for name, tensor in weights.items() if name.startswith(start)}
    encoder.load_state_dict({name: tensor.to("cpu") for name, tensor in own.items()})
    prompted.prompt_encoder = nn.ModuleDict({prompted.active_adapter: encoder})


def _encoder(config: PeftConfig) -> Any:
    if isinstance(config, PrefixTuningConfig):
        return PrefixEncoder(config)
    if isinstance(config, PromptEncoderConfig):
        return PromptEncoder(config)
    return PromptEmbedding(config, None)

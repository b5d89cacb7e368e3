"""Builds the architecture of a configuration without weights: on meta, then as tensors without values."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from launcher.adapters.options import METHODS
from launcher.memory.live_bytes_torch import CARD
from launcher.memory.packed_weights_torch import pack_linears
from launcher.memory.trace_request import TraceRequest
from launcher.models.load_torch import DTYPES, checkpoint_activations
from launcher.precision_torch import StepPrecision
from launcher.registry import load_attribute
from launcher.step.module import TrainModule

_AUTO = {"classification": AutoModelForSequenceClassification, "causal_lm": AutoModelForCausalLM}


def build_module(
    request: TraceRequest, *, depth: int | None, fake: bool, device_type: str = "cpu"
) -> tuple[TrainModule, int]:
    """The module that the launcher trains, and its number of layers. `depth`: fewer layers than it has.

    With `fake` every parameter is an empty tensor (inside a FakeTensorMode: one without memory);
    else random weights.
    """
    config = shallow(request.config, depth)
    options = METHODS.get(request.adapter["method"]).options(**request.adapter)
    place = torch.device("meta") if fake else torch.device("cpu")
    with place, _no_modes(fake):
        base = _base(config, request)
        if request.quantisation != "none":
            pack_linears(base, request, fake=fake)
        model = load_attribute(METHODS.get(options.method).apply)(base, options, task=request.task)
        _cast_trained(model, request)
    if request.checkpointing:
        checkpoint_activations(base)
    if fake:
        fill(model)
    precision = StepPrecision(name=request.precision, device_type=device_type)
    module = TrainModule(model, task=request.task, precision=precision, chunk_bytes=request.loss_chunk_bytes)
    if fake:
        # Already in place; torch 2.13 cannot swap fake parameters (they carry weak references).
        module.to = lambda *place, **how: module  # type: ignore[method-assign]
    return module, int(config.num_hidden_layers)


def _no_modes(fake: bool) -> Any:
    """Meta tensors are made outside the modes that count."""
    return _disable_current_modes() if fake else nullcontext()


def _base(config: Any, request: TraceRequest) -> Any:
    dtype = DTYPES[request.weights_dtype]
    model = _AUTO[request.task].from_config(config, dtype=dtype, attn_implementation=request.attention)
    model.to(dtype)
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    if model.config.pad_token_id is None:
        model.config.pad_token_id = 0
    return model


def _cast_trained(model: nn.Module, request: TraceRequest) -> None:
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(DTYPES[request.trainable_dtype])


def shallow(fields: Mapping[str, Any], depth: int | None) -> Any:
    """The configuration object, cut to `depth` layers; lists with an entry a layer are cut too."""
    kept = {key: value for key, value in fields.items() if key not in ("model_type", "torch_dtype", "dtype")}
    config = AutoConfig.for_model(fields["model_type"], **kept)
    if depth is None or depth >= config.num_hidden_layers:
        return config
    whole = config.num_hidden_layers
    for key, value in config.to_dict().items():
        if isinstance(value, list) and len(value) == whole and hasattr(config, key):
            setattr(config, key, value[:depth])
    config.num_hidden_layers = depth
    return config


def fill(module: nn.Module) -> None:
    """Replace every parameter and buffer by an empty one on the card; tied ones stay tied."""
    made: dict[int, Tensor] = {}
    for each in module.modules():
        for held in (each._parameters, each._buffers):
            for name, tensor in held.items():
                if tensor is None:
                    continue
                if id(tensor) not in made:
                    made[id(tensor)] = _empty(tensor)
                held[name] = made[id(tensor)]  # type: ignore[assignment]


def _empty(tensor: Tensor) -> Tensor:
    new = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=CARD)
    return nn.Parameter(new, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else new

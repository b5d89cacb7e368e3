"""Stands for bitsandbytes' 4-bit linear layers: bytes, block scales, a whole copy per product."""

from typing import Any

import torch
from torch import Tensor, nn

from launcher.memory.trace_request import TraceRequest

# bitsandbytes 0.50.2, functional.quantize_4bit: 64 elements a block; the scales themselves 256 a block.
BLOCK, SCALE_BLOCK = 64, 256


class _Product(torch.autograd.Function):
    """bitsandbytes 0.50.2 MatMul4Bit: neither input nor dequantised weight is kept; both passes make it."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, layer: "PackedLinear", bias: Tensor | None) -> Tensor:
        ctx.layer = layer
        return nn.functional.linear(inputs, layer.dequantised(inputs.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = upstream
        return grad @ ctx.layer.dequantised(grad.dtype), None, None


class PackedLinear(nn.Linear):
    """A frozen linear layer of 4-bit weights. A subclass of nn.Linear, so that adapters find it."""

    def __init__(self, like: nn.Linear, *, double_quant: bool, compute_dtype: torch.dtype) -> None:
        """The bytes of `like`, packed; `compute_dtype` is the type of the product."""
        super().__init__(like.in_features, like.out_features, bias=like.bias is not None, dtype=torch.float32)
        count, device = like.weight.numel(), like.weight.device
        self.shape = like.weight.shape
        self.compute_dtype = compute_dtype
        packed = torch.empty((count + 1) // 2, 1, dtype=torch.uint8, device=device)
        self.weight = nn.Parameter(packed, requires_grad=False)
        if like.bias is not None:
            self.bias = nn.Parameter(like.bias.detach(), requires_grad=False)
        scales = -(-count // BLOCK)
        kind = torch.uint8 if double_quant else torch.float32
        self.register_buffer("absmax", torch.empty(scales, dtype=kind, device=device))
        self.register_buffer("code", torch.empty(16, device=device))
        if double_quant:
            self.register_buffer("absmax2", torch.empty(-(-scales // SCALE_BLOCK), device=device))
            self.register_buffer("code2", torch.empty(256, device=device))

    def dequantised(self, dtype: torch.dtype) -> Tensor:
        """The whole weight in `dtype`, as the kernel writes it."""
        return self.weight.new_empty(self.shape, dtype=dtype)

    def forward(self, inputs: Tensor) -> Tensor:
        """As bitsandbytes' Linear4bit: in the compute type, back in the input's type."""
        if torch.is_autocast_enabled("cpu"):
            inputs_in = inputs.to(torch.get_autocast_dtype("cpu"))
        else:
            inputs_in = inputs.to(self.compute_dtype)
        bias = None if self.bias is None else self.bias.to(inputs_in.dtype)
        result: Tensor = _Product.apply(inputs_in, self, bias)  # type: ignore[no-untyped-call]
        return result.to(inputs.dtype)


def pack_linears(model: Any, request: TraceRequest, *, fake: bool = True) -> None:
    """Every linear layer but the head becomes a packed one; with `kbit_upcast` the rest becomes fp32.

    Where values are real, bitsandbytes' own layers are put in.

    Source: transformers 5.24 replace_with_bnb_linear (the output embeddings are skipped) and peft 0.21
    prepare_model_for_kbit_training (parameters that are not packed are cast to fp32).
    """
    head = model.get_output_embeddings()
    compute = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(request.precision, torch.float32)
    for name, module in [*model.named_modules()]:
        if type(module) is nn.Linear and module is not head and "." in name:
            parent = model.get_submodule(name.rpartition(".")[0])
            make = _stand_in if fake else _real
            packed = make(module, request, compute)
            setattr(parent, name.rpartition(".")[2], packed)
    if request.kbit_upcast:
        for parameter in model.parameters():
            if parameter.dtype in (torch.float16, torch.bfloat16):
                parameter.data = parameter.data.float()


def _stand_in(like: nn.Linear, request: TraceRequest, compute: torch.dtype) -> nn.Module:
    return PackedLinear(like, double_quant=request.double_quant, compute_dtype=compute)


def _real(like: nn.Linear, request: TraceRequest, compute: torch.dtype) -> nn.Module:
    import bitsandbytes as bnb

    layer: nn.Module = bnb.nn.Linear4bit(
        like.in_features,
        like.out_features,
        bias=like.bias is not None,
        compute_dtype=compute,
        compress_statistics=request.double_quant,
        quant_type=request.quantisation,
    )
    kind = request.quantisation
    layer.weight = bnb.nn.Params4bit(
        like.weight.data, requires_grad=False, quant_type=kind, compress_statistics=request.double_quant
    )
    if like.bias is not None:
        layer.bias = like.bias
    return layer

"""Runs a step as CUDA kernels would keep it, on tensors of a CPU: see `cuda_kernels` for the table.

A function mode stands between the model's code and torch. It only changes which operators run, and so
what autograd keeps; shapes come from torch's own meta kernels.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import _engine_run_backward
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_HALF = (torch.float16, torch.bfloat16)
# autocast_mode.h, torch 2.13; names as they are called from Python.
_FP32 = {
    *("layer_norm", "native_layer_norm", "group_norm", "rms_norm", "pow", "__pow__", "__rpow__", "rsqrt"),
    *("exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "softplus", "logsumexp", "nll_loss"),
    *("acos", "asin", "cosh", "erfinv", "sinh", "tan", "cosine_similarity", "kl_div", "l1_loss", "mse_loss"),
    *("smooth_l1_loss", "huber_loss", "cdist", "dist", "renorm", "binary_cross_entropy_with_logits"),
}
_FP32_RESULT = {"softmax", "log_softmax", "sum", "prod", "cumsum", "cumprod", "vector_norm", "matrix_norm"}


class CudaKernels(TorchFunctionMode):
    """Puts CUDA's choices in the place of the CPU's while entered."""

    def __init__(self, *, compute_capability: tuple[int, int]) -> None:
        super().__init__()
        self.compute_capability = compute_capability

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """One call of torch's Python interface."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is Tensor.backward:
            return self._backward(args[0])
        if func is F.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        if func is F.dropout:
            return _dropout(func, *args, **kwargs)
        if name in ("softmax", "log_softmax") and args[0].dtype in _HALF:
            return _softmax(func, args, kwargs)
        if torch.is_autocast_enabled("cpu"):
            if name in _FP32:
                return func(*map(_to_fp32, args), **{key: _to_fp32(value) for key, value in kwargs.items()})
            if name in _FP32_RESULT and _is_half(args[0]) and kwargs.get("dtype") is None:
                return func(*args, **(kwargs | {"dtype": torch.float32}))
        return func(*args, **kwargs)

    def _backward(self, loss: Tensor) -> None:
        """A mode is off while it handles a call, but recomputation in the backward pass needs it on.

        The engine hands the modes of its caller to every node, so it is called below Python's interface.
        """
        one = torch.ones_like(loss)
        with self:
            _engine_run_backward(
                (loss,), (one,), False, False, (), allow_unreachable=True, accumulate_grad=True
            )

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        query, key, value, mask = (_to_compute(each) for each in (query, key, value, attn_mask))
        if enable_gqa and key.shape[1] == query.shape[1]:
            enable_gqa = False
        if self._takes_flash(query, mask):
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if not enable_gqa and _is_aligned(query):
            return _efficient(query, key, value, mask, dropout_p, is_causal, scale)
        math_kernel = torch.ops.aten._scaled_dot_product_attention_math
        with torch.autocast("cpu", enabled=False):
            found: Tensor = math_kernel(
                query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )[0]
        return found

    def _takes_flash(self, query: Tensor, mask: Tensor | None) -> bool:
        fits = query.dtype in _HALF and query.shape[-1] <= 256
        return mask is None and fits and self.compute_capability >= (8, 0)


def _is_half(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype in _HALF


def _to_fp32(value: Any) -> Any:
    return value.float() if _is_half(value) else value


def _to_compute(value: Any) -> Any:
    """As autocast does for attention's inputs; a boolean mask stays."""
    if isinstance(value, Tensor) and value.is_floating_point() and torch.is_autocast_enabled("cpu"):
        return value.to(torch.get_autocast_dtype("cpu"))
    return value


def _is_aligned(query: Tensor) -> bool:
    """16 bytes, as the memory-efficient kernel loads them."""
    return query.shape[-1] * query.element_size() % 16 == 0


def _dropout(
    func: Callable[..., Tensor], input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    if not training or p in (0.0, 1.0) or inplace:
        return func(input, p, training, inplace)
    return torch.native_dropout(input, p, True)[0]


def _softmax(func: Callable[..., Tensor], args: Sequence[Any], kwargs: dict[str, Any]) -> Tensor:
    """Half precision in: under autocast, or where the caller says so, fp32 out."""
    wants_fp32 = kwargs.get("dtype") is torch.float32 or torch.float32 in args
    if not wants_fp32 and not torch.is_autocast_enabled("cpu"):
        return func(*args, **kwargs)
    kept = [each for each in args if not isinstance(each, torch.dtype)]
    rest = {key: value for key, value in kwargs.items() if key != "dtype"}
    if args[0].dtype is torch.float16 and func.__name__ == "softmax":
        dim = rest["dim"] if "dim" in rest else kept[1]
        found: Tensor = _HalfSoftmax.apply(kept[0], dim)  # type: ignore[no-untyped-call]
        return found
    return func(kept[0].float(), *kept[1:], **rest)


class _HalfSoftmax(torch.autograd.Function):
    """CUDA's kernel from fp16 to fp32: no fp32 copy of its input."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, dim: int) -> Tensor:
        result = torch.empty_like(scores, dtype=torch.float32)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None]:
        return torch.empty_like(ctx.saved_tensors[0], dtype=torch.float16), None


def _flash(
    query: Tensor, key: Tensor, value: Tensor, dropout: float, is_causal: bool, scale: float | None
) -> Tensor:
    width = query.shape[-1]
    if scale is None:
        scale = 1 / math.sqrt(width)
    if width % 8:
        query, key, value = (F.pad(each, (0, 8 - width % 8)) for each in (query, key, value))
    kernel = torch.ops.aten._scaled_dot_product_flash_attention
    found: Tensor = kernel(query, key, value, dropout, is_causal, False, scale=scale)[0]
    return found[..., :width]


def _efficient(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    bias = None if mask is None else _bias(mask, query, key)
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    keeps = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    found: Tensor = kernel(query, key, value, bias, keeps, dropout, is_causal, scale=scale)[0]
    return found


def _bias(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The mask added to the scores: of the compute type, its rows padded to 16 elements."""
    if mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(mask.logical_not(), -math.inf)
    length = mask.shape[-1]
    if length % 16:
        mask = F.pad(mask, (0, 16 - length % 16))[..., :length]
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


def workspace_bytes(func: Any, args: Sequence[Any]) -> int:
    """What a kernel allocates and frees inside one call, in bytes; 0 for most."""
    if func is torch.ops.aten._scaled_dot_product_flash_attention_backward.default:
        return _flash_backward(args[1], args[2])
    if func is torch.ops.aten._scaled_dot_product_efficient_attention_backward.default:
        query: Tensor = args[1]
        sums = 4 * math.prod(query.shape[:3])
        return sums + (4 * query.numel() if query.dtype in _HALF else 0)
    return 0


def _flash_backward(query: Tensor, key: Tensor) -> int:
    rows, heads, length, width = query.shape
    length, width = -(-length // 128) * 128, -(-width // 32) * 32
    accumulated = 4 * rows * heads * length * (width + 1)
    expanded = 0 if key.shape[1] == heads else 2 * rows * heads * key.shape[2] * key.shape[3]
    return accumulated + expanded * query.element_size()

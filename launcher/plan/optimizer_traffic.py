"""Bytes that one optimizer step moves for each trained element, gradient clipping included."""

from launcher.memory.setting import Setting
from launcher.plan.work import WIDTH

# Passes over (weight, gradient, state) of one width: fused reads and writes each once; foreach runs decay,
# two moments, root, sum, quotient and update as kernels of their own: about 22 passes.
_PASSES = {
    "adamw_fused": 7,
    "adamw_foreach": 22,
    "adamw_loop": 22,
    "adafactor": 12,
    "sgd": 3,
    "sgd_momentum": 5,
}
# 8-bit states are read and written in a byte each beside weight (read, write) and gradient.
_EIGHT_BIT = ("adamw_8bit", "paged_adamw_8bit")
# Norm (read), scaling (read, write), setting to zero or accumulating (read, write).
_CLIPPING = 5


def optimizer_bytes(setting: Setting) -> float:
    """Bytes a trained element of one step."""
    width = WIDTH[setting.trainable_dtype]
    if setting.optimizer in _EIGHT_BIT:
        return width * (3 + _CLIPPING) + 4
    return width * (_PASSES.get(setting.optimizer, _PASSES["adamw_fused"]) + _CLIPPING)


def trained_params(setting: Setting) -> int:
    """Elements that the optimizer updates."""
    return setting.shape.num_params if setting.adapter is None else setting.adapter.num_params

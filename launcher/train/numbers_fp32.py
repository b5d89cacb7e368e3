"""Modules that compute in fp32 while the rest does not: for layers whose values a half type cannot hold."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from launcher.errors import BadValue, Problem
from launcher.registry import nearest

MARK = "computes_in_fp32"


def keep_in_fp32(root: nn.Module, names: Sequence[str]) -> list[str]:
    """Let the modules whose names end so compute in fp32; their full names. Before a backend wraps `root`.

    Half weights of such a module become fp32. Raises BadValue where a name fits no module.
    """
    found: dict[str, nn.Module] = {}
    modules = {name: module for name, module in root.named_modules() if name}
    for wanted in names:
        fitting = {name: module for name, module in modules.items() if f".{name}".endswith(f".{wanted}")}
        if not fitting:
            raise BadValue(_unknown(wanted, list(modules)))
        found |= fitting
    for module in found.values():
        if any(parameter.is_floating_point() for parameter in module.parameters()):
            module.float()
        module.forward = _in_fp32(module.forward)
        for inner in module.modules():
            setattr(inner, MARK, True)
    return list(found)


def _in_fp32(forward: Any) -> Any:
    """The forward pass without autocast, on fp32 copies of what comes in half."""

    @functools.wraps(forward)
    def whole(*args: Any, **kwargs: Any) -> Any:
        device = next((each.device.type for each in args if isinstance(each, Tensor)), "cpu")
        with torch.autocast(device, enabled=False):
            return forward(*map(_wide, args), **{key: _wide(each) for key, each in kwargs.items()})

    return whole


def _wide(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_half else value


def _unknown(wanted: str, names: Sequence[str]) -> Problem:
    close = nearest(wanted, names) or names[-1]
    return Problem(
        where="training.fp32_modules",
        what=f"no module's name ends in '{wanted}'",
        right=f"the end of a module's name, such as {close}",
        type=f"training.fp32_modules={close}",
    )

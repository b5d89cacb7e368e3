"""Which AdamW steps in host RAM where a backend offloads the optimizer, and why (deepspeed 0.19.8).

DeepSpeed's own is written for it, and is an operator in C++ that takes minutes to compile. It is taken
where it is compiled already, or asked for; else torch's AdamW does the same arithmetic.
"""

import os

import torch
from torch.optim import Optimizer

from launcher.backends import operators
from launcher.backends.operators import CPU_ADAM
from launcher.errors import HardwareError

_NOT_COMPILED = "DeepSpeed's CPU Adam is not compiled here (backend.cpu_adam=deepspeed compiles it, minutes)"


def offloaded(optimizer: Optimizer, asked: str) -> tuple[Optimizer, str]:
    """The optimizer for host RAM in place of `optimizer`, and a line that says which and why.

    `asked`: auto, deepspeed or torch. Raises HardwareError where DeepSpeed's is asked for and cannot be
    built here.
    """
    reason = _against(optimizer, asked)
    if reason:
        return optimizer, f"optimizer in host RAM: {_name(optimizer)}: {reason}"
    if asked == "deepspeed" and (found := operators.problems(CPU_ADAM, os.environ)):
        raise HardwareError(found)
    was_compiled = operators.is_compiled(CPU_ADAM, os.environ)
    made = _deepspeeds(optimizer)
    why = "compiled already" if was_compiled else "asked for, and compiled now"
    return made, f"optimizer in host RAM: DeepSpeed's CPU Adam: {why}"


def _against(optimizer: Optimizer, asked: str) -> str:
    """Why the optimizer stays as it is; empty where DeepSpeed's takes its place."""
    if asked == "torch":
        return "asked for"
    if type(optimizer) is not torch.optim.AdamW:
        return "DeepSpeed's CPU Adam is AdamW only"
    if asked == "deepspeed":
        return ""
    if not operators.is_compiled(CPU_ADAM, os.environ):
        return _NOT_COMPILED
    missing = operators.missing_tools(os.environ)
    return (
        f"DeepSpeed's CPU Adam is compiled, but loading it needs {' and '.join(missing)}" if missing else ""
    )


def _name(optimizer: Optimizer) -> str:
    fused = "fused " if optimizer.defaults.get("fused") else ""
    return f"torch's {fused}{type(optimizer).__name__}"


def _deepspeeds(optimizer: Optimizer) -> Optimizer:
    """DeepSpeed's AdamW over the same groups, with the same settings."""
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    kept = ("params", "names", "lr", "betas", "eps", "weight_decay", "initial_lr", "opened_at")
    groups = [{key: group[key] for key in kept if key in group} for group in optimizer.param_groups]
    defaults = optimizer.defaults
    made: Optimizer = DeepSpeedCPUAdam(
        groups,
        lr=defaults["lr"],
        betas=defaults["betas"],
        eps=defaults["eps"],
        weight_decay=defaults["weight_decay"],
        adamw_mode=True,
    )
    return made


def counts_in_python(optimizer: Optimizer) -> bool:
    """Whether the optimizer keeps its number of updates as an int, where torch's keep a tensor."""
    return type(optimizer).__name__ == "DeepSpeedCPUAdam"

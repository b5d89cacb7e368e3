"""The arithmetic of the step, chosen from what the machine computes itself, with the reason in one line.

Availability checks of the stack answer yes where bf16 is only emulated, many times slower than fp16:
compute capability decides here. Nothing in this file touches a device.
"""

from typing import Literal, NamedTuple

from launcher.errors import HardwareError, Problem
from launcher.facts import Machine

NATIVE_BF16 = (8, 0)
FP16_UNITS = (7, 0)


class Precision(NamedTuple):
    """`name` is fp32, bf16 or fp16 (which brings loss scaling and fp32 trainable weights)."""

    name: str
    reason: str


class Tf32(NamedTuple):
    """Whether fp32 products may round to TF32's ten bits, and why."""

    enabled: bool
    reason: str


def choose(asked: str, machine: Machine) -> Precision:
    """The precision for `auto`, `fp32`, `bf16`, `fp16` or `bf16-emulated` on this machine.

    Raises HardwareError for bf16 on a card without bf16 units, unless emulation is asked for by name.
    """
    if asked == "auto":
        return _auto_gpu(machine) if machine.device == "cuda" else _auto_cpu(machine)
    if asked == "bf16-emulated":
        return Precision("bf16", "asked for; " + ("native here" if _native(machine) else "emulated, slow"))
    if asked == "bf16" and not _native(machine):
        if machine.device == "cuda":
            raise HardwareError(_no_bf16(machine))
        return Precision(
            "bf16", "asked for; this CPU has no bf16 instructions, so it may be slower than fp32"
        )
    return Precision(asked, "asked for")


def _auto_gpu(machine: Machine) -> Precision:
    card, capability = _card(machine), machine.compute_capability
    if capability >= NATIVE_BF16:
        return Precision("bf16", f"{card} computes in bf16")
    if capability >= FP16_UNITS:
        return Precision(
            "fp16",
            f"{card} has no bf16 units: using fp16 + loss scaling; override with precision: bf16-emulated",
        )
    return Precision("fp32", f"{card} has neither bf16 nor fast fp16 units")


def _auto_cpu(machine: Machine) -> Precision:
    if machine.cpu_has_bf16:
        return Precision("bf16", "this CPU has bf16 instructions")
    return Precision("fp32", "this CPU has no bf16 instructions")


def choose_tf32(asked: bool | Literal["auto"], precision: str, machine: Machine) -> Tf32:
    """Whether to allow TF32. Where the hardware has none, it stays off, whatever was asked."""
    if machine.device != "cuda" or machine.compute_capability < NATIVE_BF16:
        effect = "tf32: true has no effect, " if asked is True else ""
        return Tf32(False, f"{effect}{_card(machine)} has no TF32 units")
    if asked == "auto":
        if precision == "fp32":
            return Tf32(False, "fp32 was chosen: full products; tf32: true is faster and rounds to 10 bits")
        return Tf32(True, f"{precision} rounds as much already")
    return Tf32(asked, "asked for")


def _native(machine: Machine) -> bool:
    if machine.device == "cuda":
        return machine.compute_capability >= NATIVE_BF16
    return machine.cpu_has_bf16


def _card(machine: Machine) -> str:
    if machine.device != "cuda":
        return "this CPU"
    major, minor = machine.compute_capability
    return f"{machine.gpu_name or 'this GPU'} (compute capability {major}.{minor})"


def _no_bf16(machine: Machine) -> Problem:
    return Problem(
        where="training.precision",
        what=f"bf16 is asked for, and {_card(machine)} has no bf16 units: emulation is about 9x slower",
        right="auto or fp16 here; bf16 needs compute capability 8.0; bf16-emulated if you mean it",
        type="training.precision=auto",
    )

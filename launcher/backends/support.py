"""Which method runs on which backend: proven by a test here, working upstream only, or refused.

A refused cell is refused before anything is downloaded. A proven one names the test that compares it
with a single process; a column for cards stays empty until a run on cards exists.
"""

from collections.abc import Callable
from dataclasses import dataclass

from launcher.backends.options import BACKENDS, Backend

AGREE = "tests/train/test_backends_agree.py::test_b070_losses_and_weights_are_the_same_on_every_backend"
METHODS_AGREE = "tests/adapters/test_methods_agree.py::test_the_same_numbers_on_every_backend"
EXACT = "tests/equivalence/test_exact.py::test_exact"
FROM_DISK = "tests/equivalence/test_disk.py::test_exact_from_disk"
CLOSE = "tests/equivalence/test_exact.py::test_close"
PRECISIONS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True, kw_only=True)
class Proven:
    """The same numbers as one process, by the test `file::name`."""

    test: str


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """Runs with a warning: the libraries support it, no test here has shown its numbers."""

    warning: str


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Not started: why, and the nearest backend that does it."""

    reason: str
    alternative: str


Cell = Proven | Upstream | Refused


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A method's facts beside a backend; `quantised`: frozen weights packed into 4 or 8 bits."""

    method: str
    backend: Backend
    quantised: bool = False


Rule = Callable[[Combination], Refused | None]


def quantised_weights_stay_whole(combination: Combination) -> Refused | None:
    """Packed weights cannot be divided and gathered again.

    Tried with bitsandbytes 0.50.2 on CPU: under FSDP2 the losses were wrong without an error from the
    second forward pass on; under ZeRO-3 taking the weights fails.
    """
    backend = combination.backend
    if not (combination.quantised and backend.sharding.parameters):
        return None
    leaves = "_offload" if backend.sharding.offload_parameters else ""
    return Refused(
        reason=f"{backend.name} divides the weights, and packed 4-bit or 8-bit weights cannot be divided",
        alternative=f"zero2{leaves}",
    )


RULES: tuple[Rule, ...] = (quantised_weights_stay_whole,)

_PROVEN_BY = {
    **dict.fromkeys(("single_gpu", "multi_gpu", "zero2"), AGREE),
    **dict.fromkeys(("zero1", "zero2_offload", "zero3", "zero3_offload", "fsdp2", "fsdp2_offload"), EXACT),
    "zero3_nvme": FROM_DISK,
}
PROOFS = {(method, backend): test for method in ("full", "lora") for backend, test in _PROVEN_BY.items()}
# Methods that add to a frozen model, by the backends that each is compared on.
_ADDED = ("bottleneck", "ia3", "prompt", "p_tuning", "prefix")
PROOFS |= {
    (method, backend): METHODS_AGREE for method in _ADDED for backend in _PROVEN_BY if backend != "zero3_nvme"
}
# bf16 rounds every product to eight bits, so the same numbers are close, not equal.
BF16_PROOFS = {
    (method, backend): CLOSE
    for method in ("full", "lora")
    for backend in _PROVEN_BY
    if backend != "zero3_nvme"
}
QUANTISED_PROOFS = {
    ("lora", backend): METHODS_AGREE
    for backend in ("single_gpu", "multi_gpu", "zero1", "zero2", "zero2_offload")
}
GPU_PROOFS: dict[tuple[str, str], str] = {}
_WARNINGS = {
    "model_parallel": "layers are spread only where two cards are visible; nothing of it is proven here",
}


def cell(method: str, backend: str, *, quantised: bool = False, precision: str = "fp32") -> Cell:
    """Where this method stands on this backend in this precision. Raises UnknownSetting: no such backend."""
    combination = Combination(method=method, backend=BACKENDS.get(backend), quantised=quantised)
    for rule in RULES:
        if refused := rule(combination):
            return refused
    if test := _proofs(quantised, precision).get((method, backend)):
        return Proven(test=test)
    return Upstream(warning=_WARNINGS.get(backend) or _not_compared(method, backend, quantised, precision))


def _proofs(quantised: bool, precision: str) -> dict[tuple[str, str], str]:
    by_precision = {
        "fp32": QUANTISED_PROOFS if quantised else PROOFS,
        "bf16": {} if quantised else BF16_PROOFS,
    }
    return by_precision.get(precision, {})


def _not_compared(method: str, backend: str, quantised: bool, precision: str) -> str:
    packed = " over packed weights" if quantised else ""
    rounded = "" if precision == "fp32" else f" in {precision}"
    return f"no test here has compared {method}{packed} on {backend}{rounded}"


def gpu_proof(method: str, backend: str) -> str:
    """The run on cards that showed the same numbers; empty where there is none yet."""
    return GPU_PROOFS.get((method, backend), "")

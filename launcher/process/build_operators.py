"""Compiles the DeepSpeed operators of a backend ahead of a run, in a process of its own."""

import subprocess
import sys
from collections.abc import Mapping

from launcher.backends import operators
from launcher.backends.operators import ASYNC_IO, CPU_ADAM, Operator
from launcher.backends.options import Backend
from launcher.errors import HardwareError, Problem

_BUILDERS = {CPU_ADAM.name: "CPUAdamBuilder", ASYNC_IO.name: "AsyncIOBuilder"}
_CODE = "from deepspeed.ops.op_builder import {builder} as b; b().load()"


def build(backend: Backend, environ: Mapping[str, str]) -> str:
    """A line that says what is there now. Raises HardwareError where an operator cannot be compiled."""
    wanted = _operators(backend)
    if not wanted:
        return f"{backend.name} uses no operator that is compiled"
    said = [_build(operator, environ) for operator in wanted]
    return "; ".join(said)


def _operators(backend: Backend) -> list[Operator]:
    disk = [ASYNC_IO] if backend.name.endswith("nvme") else []
    adam = [CPU_ADAM] if backend.ds_config is not None and backend.sharding.offload_optimizer else []
    return [*disk, *adam]


def _build(operator: Operator, environ: Mapping[str, str]) -> str:
    if operators.is_compiled(operator, environ):
        return f"DeepSpeed's {operator.name} is compiled already"
    if found := operators.problems(operator, environ):
        raise HardwareError(found)
    code = _CODE.format(builder=_BUILDERS[operator.name])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environ}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise HardwareError(_failed(operator, done.stderr))
    return f"DeepSpeed's {operator.name} is compiled"


def _failed(operator: Operator, errors: str) -> Problem:
    lines = [line for line in errors.splitlines() if "error" in line.lower()] or errors.splitlines()[-1:]
    return Problem(
        where=f"DeepSpeed's {operator.name}",
        what=f"it does not compile here: {(lines or ['no message'])[0].strip()[:300]}",
        right="a compiler that torch of this version supports",
        type="CXX=g++-11 launcher prepare ... --build-ops, or backend.cpu_adam=torch",
    )

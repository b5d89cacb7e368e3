"""The DeepSpeed operators that a backend uses, compiled ahead of a run in a process of its own."""

import subprocess
import sys
from collections.abc import Mapping

from launcher.backends import operators
from launcher.backends.operators import ASYNC_IO, CPU_ADAM
from launcher.backends.options import Backend


def wanted(backend: Backend) -> list[str]:
    """Names of the operators that the backend can use."""
    disk = [ASYNC_IO.name] if backend.name.endswith("nvme") else []
    adam = [CPU_ADAM.name] if backend.ds_config is not None and backend.sharding.offload_optimizer else []
    return [*disk, *adam]


def build(backend: Backend, environ: Mapping[str, str]) -> int:
    """Compile what is not compiled yet; the child says what is missing. Returns its exit code."""
    known = {operator.name: operator for operator in (ASYNC_IO, CPU_ADAM)}
    left = [name for name in wanted(backend) if not operators.is_compiled(known[name], environ)]
    if not left:
        return 0
    command = [sys.executable, "-m", "launcher.backends.build_torch", *left]
    return subprocess.run(command, env={**environ}, check=False).returncode

"""Compiles DeepSpeed's operators before a run waits: `python -m launcher.backends.build_torch NAME`."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from launcher.backends import operators
from launcher.backends.operators import ASYNC_IO, CPU_ADAM, Operator
from launcher.errors import HardwareError, LauncherError, Problem, UnknownSetting
from launcher.registry import nearest
from launcher.units import format_seconds

_BUILDERS = {CPU_ADAM.name: "CPUAdamBuilder", ASYNC_IO.name: "AsyncIOBuilder"}
_OPERATORS = {operator.name: operator for operator in (CPU_ADAM, ASYNC_IO)}


def build(operator: Operator) -> None:
    """Compile and load it; quick where it is compiled already. Raises HardwareError with what is missing."""
    if found := operators.problems(operator, os.environ):
        raise HardwareError(found)
    os.environ["PATH"] = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    )
    from deepspeed.ops import op_builder

    getattr(op_builder, _BUILDERS[operator.name])().load(verbose=False)


def main(names: Sequence[str]) -> int:
    """Compile what is named, else the CPU Adam. Returns the exit code."""
    code = 0
    for name in names or (CPU_ADAM.name,):
        try:
            start = time.perf_counter()
            build(_named(name))
            print(f"{name}: ready after {format_seconds(time.perf_counter() - start)}", file=sys.stderr)
        except LauncherError as error:
            print(error, file=sys.stderr)
            code = error.exit_code
    return code


def _named(name: str) -> Operator:
    if name in _OPERATORS:
        return _OPERATORS[name]
    raise UnknownSetting(
        Problem(
            what=f"no operator '{name}'",
            right=f"one of: {', '.join(_OPERATORS)}",
            type=f"python -m launcher.backends.build_torch {nearest(name, _OPERATORS) or CPU_ADAM.name}",
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

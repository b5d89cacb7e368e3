"""Compiler and ninja for DeepSpeed's operators: CPU Adam under offloading, and the disk's."""

from collections.abc import Iterator

from launcher.backends.operators import ASYNC_IO, CPU_ADAM, is_compiled, missing_tools, problems
from launcher.backends.options import BACKENDS
from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient
from launcher.process.build_operators import wanted
from launcher.process.op_lock import clear_stale_locks, stale_locks

_INSTALL = "sudo apt-get install -y g++ ; pip install ninja"


def examine(patient: Patient) -> Iterator[Finding]:
    """What the recipe's backend compiles; without a recipe, whether anything could be."""
    names = wanted(BACKENDS.get(patient.recipe.backend.name)) if patient.recipe else []
    found = [each for each in (CPU_ADAM, ASYNC_IO) if each.name in names]
    faults = [problem for operator in found for problem in problems(operator, patient.environ)]
    for problem in faults:
        yield bad(f"{problem.where}: {problem.what}", problem.right, typed=problem.type)
    tools = missing_tools(patient.environ)
    if tools and not faults:
        yield note(f"not on PATH: {' and '.join(tools)}", "for offloading backends", typed=_INSTALL)
    elif not faults:
        yield good("a C++ compiler and ninja")
    for operator in found if not faults else ():
        if not is_compiled(operator, patient.environ):
            typed = f"launcher prepare {patient.typed} --build-ops"
            yield note(f"{operator.name} is not compiled yet: the first start takes minutes", typed=typed)
    for lock in stale_locks(patient.environ):
        yield bad(
            f"{lock} was left behind by a compilation that was killed: every later run waits for it",
            "no lock without an owner",
            typed="launcher doctor --fix",
        )


def fix(patient: Patient) -> Iterator[str]:
    """Remove locks that no process holds."""
    yield from clear_stale_locks(patient.environ)


CHECKS.register("compiler", Check(name="compiler", order=20, examine=examine, fix=fix))

"""The recipe's data files."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good
from launcher.doctor.patient import Patient
from launcher.recipe.check import data_problems


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing without a recipe."""
    if patient.loaded is None:
        return
    faults = data_problems(patient.loaded)
    for problem in faults:
        yield bad(problem.what, problem.right, typed=problem.type)
    if not faults:
        yield good(f"{patient.loaded.recipe.data.train_file} is here")


CHECKS.register("data", Check(name="data", order=41, examine=examine))

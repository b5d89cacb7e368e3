"""The recipe's model: on this machine, whole, or to be fetched first."""

from collections.abc import Iterator

from launcher.doctor.cached import missing
from launcher.doctor.check import CHECKS, Check, Finding, bad, good
from launcher.doctor.patient import Patient
from launcher.models.source import is_hub_id


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing without a recipe."""
    recipe = patient.recipe
    if recipe is None:
        return
    faults = [*missing(recipe.model)]
    typed = f"launcher prepare {patient.typed}" if is_hub_id(recipe.model) else "model_name_or_path=FOLDER"
    for fault in faults:
        yield bad(fault, "the model's files", typed=typed)
    if not faults:
        yield good(f"{recipe.model.model_name_or_path} is here")


CHECKS.register("model", Check(name="model", order=40, examine=examine))

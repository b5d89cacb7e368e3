"""A rented machine switched on without its cards: cheap, for everything but a model."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, note
from launcher.doctor.patient import Patient


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing elsewhere; bad where a recipe is to be run."""
    if patient.platform is None or patient.platform.num_gpus:
        return
    found = f"{patient.platform.name} without a GPU: check, plan and prepare work, run refuses"
    typed = f"launcher prepare {patient.typed}"
    if patient.recipe is None or patient.recipe.hardware.device == "cpu":
        yield note(found, typed=typed)
    else:
        yield bad(found, "an instance started with its cards, for launcher run", typed=typed)


CHECKS.register("no_gpu", Check(name="no-GPU mode", order=1, examine=examine))

"""bitsandbytes: a real round trip through 4 bits, and what its kernels need of a card."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient

# NF4 and 8-bit optimizers, and LLM.int8: release notes of 0.50.
_FOUR_BIT, _EIGHT_BIT = (6, 0), (7, 5)
_LARGEST_MEAN_ERROR = 0.1  # of normal numbers; NF4's own is 0.07


def examine(patient: Patient) -> Iterator[Finding]:
    """Bad only where the recipe needs it."""
    found, recipe = patient.probes.get("bitsandbytes"), patient.recipe
    is_needed = recipe is not None and (recipe.model.is_quantised or "bnb" in str(recipe.training.optim))
    tell = bad if is_needed else note
    if found.get("absent"):
        if is_needed:
            yield bad("not installed", f"bitsandbytes 0.46 or newer for {patient.typed}", typed=_INSTALL)
        else:
            yield note("not installed: quantised recipes (QLoRA) need it", typed=_INSTALL)
    elif "error" in found:
        yield tell(f"it fails: {found['error']}", "a build for this torch and card", typed=_UPGRADE)
    elif found["mean_error"] > _LARGEST_MEAN_ERROR:
        yield tell(
            f"{found['version']} on {found['place']}: numbers come back wrong through 4 bits "
            f"(mean error {found['mean_error']:.2g})",
            "about 0.07",
            typed=_UPGRADE,
        )
    else:
        yield good(f"{found['version']}: a round trip through 4 bits on {found['place']} comes back")
    yield from _cards(patient)


_INSTALL = "pip install 'bitsandbytes>=0.46'"
_UPGRADE = "pip install -U bitsandbytes"


def _cards(patient: Patient) -> Iterator[Finding]:
    model = patient.recipe.model if patient.recipe else None
    if model is None or not model.is_quantised:
        return
    least = _EIGHT_BIT if model.load_in_8bit else _FOUR_BIT
    for card in patient.driver.cards:
        if (0, 0) < card.capability < least:
            yield bad(
                f"card {card.index} ({card.name}) has capability {card.capability[0]}.{card.capability[1]}",
                f"{least[0]}.{least[1]} for {'8' if model.load_in_8bit else '4'}-bit weights",
                typed="model.load_in_4bit=true" if model.load_in_8bit else "model.load_in_4bit=false",
            )


CHECKS.register("bitsandbytes", Check(name="bitsandbytes", order=12, examine=examine))

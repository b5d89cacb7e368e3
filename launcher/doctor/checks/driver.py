"""The driver and its cards."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.driver import Card
from launcher.doctor.patient import Patient
from launcher.units import format_bytes


def examine(patient: Patient) -> Iterator[Finding]:
    """Every card by name and measured memory; too few for the recipe, or none that answers, is bad."""
    driver = patient.driver
    if driver.fault:
        yield bad(
            f"nvidia-smi: {driver.fault}",
            "a driver that answers; after an update of the driver, a restart",
            typed="nvidia-smi",
        )
        return
    if not driver.cards:
        yield _no_card(patient)
        return
    yield good(f"driver {driver.version or 'unknown'}" + (f", up to CUDA {driver.cuda}" * bool(driver.cuda)))
    yield from map(_card, driver.cards)
    wanted = patient.recipe.hardware.gpus if patient.recipe else 0
    if wanted > len(patient.visible):
        yield bad(
            f"{len(patient.visible)} visible of {len(driver.cards)} cards",
            f"{wanted} for {patient.typed}",
            typed=f"launcher run {patient.typed} --gpus {max(1, len(patient.visible))}"
            + ("   (or: unset CUDA_VISIBLE_DEVICES)" * ("CUDA_VISIBLE_DEVICES" in patient.environ)),
        )


def _no_card(patient: Patient) -> Finding:
    if patient.wants_card:
        return bad("no NVIDIA card or driver", f"a card for {patient.typed}", typed="hardware.device=cpu")
    return note("no NVIDIA card or driver: models train on the CPU here")


def _card(card: Card) -> Finding:
    """Planned by measured memory: a name alone does not give it."""
    major, minor = card.capability
    capability = f", capability {major}.{minor}" if card.capability != (0, 0) else ""
    found = f"card {card.index}: {card.name}, {format_bytes(card.memory_bytes)}{capability}"
    if card.known is None:
        return note(
            found, "a card of the catalogue, for memory plans", typed="launcher plan RECIPE --gpu CARD"
        )
    return good(f"{found}; planned as {card.known.name}")


CHECKS.register("driver", Check(name="driver", order=10, examine=examine))

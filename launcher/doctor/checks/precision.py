"""Which cards compute in bf16 themselves: torch says yes for the others too, and emulates."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient

_UNITS = (8, 0)


def examine(patient: Patient) -> Iterator[Finding]:
    """By compute capability; a recipe that asks for bf16 on an older card is refused by the run."""
    asked = patient.recipe.training.precision if patient.recipe else "auto"
    told = [card for card in patient.driver.cards if card.capability != (0, 0)]
    old = [card for card in told if card.capability < _UNITS]
    if not told:
        yield from _cpu(patient, asked)
    elif not old:
        yield good("every card has bf16 units")
    else:
        names = ", ".join(sorted({card.name for card in old}))
        text = f"no bf16 units: {names} (torch would emulate bf16, about nine times slower than fp16)"
        if asked == "bf16":
            yield bad(text, "precision: fp16 on these cards", typed="training.precision=auto")
        else:
            yield note(text, "auto takes fp16 with a loss scale here")


def _cpu(patient: Patient, asked: str) -> Iterator[Finding]:
    has_units = patient.probes.get("torch").get("cpu_has_bf16", False)
    words = (
        "the CPU multiplies in bf16 itself" if has_units else "this CPU has no bf16 units: auto takes fp32"
    )
    yield note(words) if asked == "bf16" and not has_units else good(words)


CHECKS.register("precision", Check(name="bf16", order=13, examine=examine))

"""Variables that do something else than notes on the web say, or nothing."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, good, note
from launcher.doctor.patient import Patient
from launcher.hardware.folklore import mistaken
from launcher.hardware.way_out import both_ways


def examine(patient: Patient) -> Iterator[Finding]:
    """One line a variable."""
    found = [note(given, belief.truth, typed=belief.instead) for given, belief in mistaken(patient.environ)]
    if warning := both_ways(patient.environ):
        found.append(note(warning))
    yield from found or [good("no variable that does something else than it is set for")]


CHECKS.register("folklore", Check(name="environment", order=30, examine=examine))

"""Main memory and cores as the container grants them, which /proc/meminfo does not know."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, good, note
from launcher.doctor.patient import Patient
from launcher.hardware.limits import cores, host_memory_bytes
from launcher.units import GIB, format_bytes

_SCANT_BYTES = 4 * GIB


def examine(patient: Patient) -> Iterator[Finding]:
    """The figures with who set them."""
    memory, number = host_memory_bytes(patient.root), cores(patient.root)
    found = (
        f"{format_bytes(memory.amount)} of memory ({memory.source}), {number.amount} cores ({number.source})"
    )
    if memory.amount < _SCANT_BYTES:
        yield note(found, "4 GiB: torch, a tokenizer and a small model take that")
    else:
        yield good(found)


CHECKS.register("host_memory", Check(name="host memory", order=23, examine=examine))

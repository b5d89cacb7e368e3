"""/dev/shm, through which data workers hand over batches and NCCL talks inside one machine."""

import os
from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient
from launcher.units import GIB, MIB, format_bytes

_DOCKER_BYTES, _ENOUGH_BYTES = 64 * MIB, GIB


def examine(patient: Patient) -> Iterator[Finding]:
    """Docker's 64 MiB is bad where the recipe has workers or several cards."""
    place = patient.root / "dev/shm"
    if not place.is_dir():
        yield note("there is no /dev/shm")
        return
    figures = os.statvfs(place)
    size, free = figures.f_blocks * figures.f_frsize, figures.f_bavail * figures.f_frsize
    found, typed = f"{format_bytes(free)} free of {format_bytes(size)}", "docker run --shm-size 8g ..."
    if size >= _ENOUGH_BYTES:
        yield good(found)
    elif _is_used(patient) and size <= _DOCKER_BYTES:
        yield bad(
            found, "1 GiB for data workers and several cards", typed=f"dataloader_num_workers=0, or {typed}"
        )
    else:
        yield note(found, "1 GiB where data workers or several cards are used", typed=typed)


def _is_used(patient: Patient) -> bool:
    recipe = patient.recipe
    return recipe is not None and (recipe.data.dataloader_num_workers != 0 or recipe.hardware.gpus > 1)


CHECKS.register("shared_memory", Check(name="/dev/shm", order=24, examine=examine))

"""Bytes and files free on every disk that a run writes to, and whether this recipe's run goes there."""

from collections.abc import Iterator
from pathlib import Path

from launcher.data.cache_place import cache_root
from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient
from launcher.errors import LauncherError
from launcher.hardware.mounts import Room, mount_points, rooms
from launcher.hardware.placement import OUTPUT_VARIABLE
from launcher.plan.room_by_mount import require_rooms
from launcher.units import GIB

_SCANT_BYTES = 5 * GIB


def examine(patient: Patient) -> Iterator[Finding]:
    """A disk that is full is bad; a recipe's run that does not fit is what `launcher run` would refuse."""
    yield from map(_room, rooms(_places(patient), mount_points()).values())
    if patient.loaded is None:
        return
    try:
        for line in require_rooms(patient.loaded.recipe, patient.loaded.name, patient.environ):
            yield good(line.removeprefix("disk "))
    except LauncherError as error:
        for problem in error.problems:
            where = problem.where.removeprefix("disk ")
            yield bad(f"{where}: {problem.what}", problem.right, typed=problem.type)


def _places(patient: Patient) -> dict[str, Path]:
    environ = patient.environ
    home = Path(environ.get("HF_HOME") or Path.home() / ".cache/huggingface")
    output = patient.recipe.output_dir if patient.recipe else environ.get(OUTPUT_VARIABLE, "runs")
    return {
        "hub": home,
        "tokens": cache_root(environ),
        "temporary": Path(environ.get("TMPDIR") or "/tmp"),
        "runs": Path(output).expanduser(),
        "system": patient.root,
    }


def _room(room: Room) -> Finding:
    typed = f"df -h {room.mount} ; df -i {room.mount}"
    if room.free_bytes == 0 or room.free_files == 0:
        return bad(f"full: {room.line()}", "room for bytes and for files", typed=typed)
    if room.free_bytes < _SCANT_BYTES:
        return note(f"scant: {room.line()}", "5 GiB and more", typed=typed)
    return good(room.line())


CHECKS.register("disk", Check(name="disk", order=25, examine=examine))

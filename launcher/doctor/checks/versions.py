"""Installed versions against the project's floors, and against the newest that it was tried with."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import launcher
from launcher.backends.options import BACKENDS
from launcher.doctor.builds import numbers
from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.patient import Patient

_FLOOR = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9][0-9.]*)(.*)")
_PYTHON = (3, 11)


def examine(patient: Patient) -> Iterator[Finding]:
    """Missing or too old is bad where it is needed; newer than tried is a note."""
    if sys.version_info < _PYTHON:
        yield bad(
            f"Python {sys.version.split()[0]}", "3.11 or newer", typed="PYTHON=python3.12 make quickstart"
        )
    tried, told = tested(), 0
    for name, floor, extra in floors():
        finding = _one(name, floor, tried.get(name), is_needed=_is_needed(patient, name, extra))
        if finding is not None:
            told += 1
            yield finding
    if not told:
        yield good("every package is between its floor and the newest that was tried")


def floors() -> Iterator[tuple[str, str, bool]]:
    """Package, oldest version, whether only an extra asks for it; as the installed project states them."""
    try:
        lines = requires("finetune-launcher") or []
    except PackageNotFoundError:
        return
    for line in lines:
        found = _FLOOR.match(line)
        if found and 'extra == "dev"' not in line and "extra == 'dev'" not in line:
            yield found.group(1), found.group(2), "extra ==" in found.group(3)


def tested() -> dict[str, str]:
    """The newest versions that were tried; known in a clone only."""
    file = Path(launcher.__file__).resolve().parents[1] / "constraints/tested.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    pairs = [line.split("==") for line in lines if "==" in line and not line.startswith("#")]
    return {name.strip(): number.strip() for name, number in pairs}


def _is_needed(patient: Patient, name: str, extra: bool) -> bool:
    if not extra:
        return True
    recipe = patient.recipe
    if recipe is None:
        return False
    uses = {
        "deepspeed": BACKENDS.get(recipe.backend.name).ds_config is not None,
        "bitsandbytes": recipe.model.is_quantised,
        "tensorboard": False,  # without it, metrics.jsonl is written alone
        "gguf": recipe.model.gguf_file is not None,
    }
    return uses.get(name, False)


def _one(name: str, floor: str, tried: str | None, *, is_needed: bool) -> Finding | None:
    typed = f"pip install '{name}>={floor}'"
    try:
        here = version(name)
    except PackageNotFoundError:
        return bad(f"{name} is not installed", f"{floor} or newer", typed=typed) if is_needed else None
    if numbers(here) < numbers(floor):
        tell = bad if is_needed else note
        return tell(f"{name} {here} is too old", f"{floor} or newer", typed=typed)
    if tried and numbers(here)[:2] > numbers(tried)[:2]:
        typed = f"pip install {name}=={tried}"
        return note(f"{name} {here} is newer than {tried}, the newest tried", typed=typed)
    return None


CHECKS.register("versions", Check(name="versions", order=29, examine=examine))

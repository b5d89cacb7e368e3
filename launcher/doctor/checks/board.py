"""Runs that a rented machine's TensorBoard panel does not show yet."""

from collections.abc import Iterator
from pathlib import Path

from launcher.doctor.check import CHECKS, Check, Finding, good, note
from launcher.doctor.patient import Patient
from launcher.hardware.placement import OUTPUT_VARIABLE
from launcher.process.board import link_run


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing where there is no panel."""
    if patient.platform is None or patient.platform.board_folder is None:
        return
    panel = patient.platform.board_folder
    unseen = [run.name for run in _runs(patient) if run not in _seen(panel)]
    if unseen:
        yield note(f"{panel} does not show: {', '.join(unseen)}", typed="launcher doctor --fix")
    else:
        yield good(f"{panel}: the tile on port {patient.platform.board_port} reads it")


def fix(patient: Patient) -> Iterator[str]:
    """Link them under their names; nothing is written over."""
    if patient.platform is None or patient.platform.board_folder is None:
        return
    panel = patient.platform.board_folder
    for run in _runs(patient):
        if run not in _seen(panel):
            yield f"linked {link_run(panel, run)} to {run}"


def _runs(patient: Patient) -> list[Path]:
    output = patient.recipe.output_dir if patient.recipe else patient.environ.get(OUTPUT_VARIABLE, "runs")
    return sorted(path.parent.resolve() for path in Path(output).expanduser().glob("*/metrics.jsonl"))


def _seen(panel: Path) -> set[Path]:
    return {path.resolve() for path in panel.iterdir()}


CHECKS.register("board", Check(name="TensorBoard", order=31, examine=examine, fix=fix))

"""A trained model as a folder to hand on: weights, tokenizer, label names, a model card. No torch."""

import shutil
from pathlib import Path

from launcher.errors import DoesNotFit, Problem
from launcher.export.card import write_card
from launcher.hardware.free_space import free_bytes
from launcher.train.final_model import read_facts
from launcher.units import format_bytes


def export(run: Path, to: Path) -> Path:
    """Copy the run's final model to `to` with a card; whole or not at all.

    Raises ExportError for a run without a finished model, DoesNotFit where the disk is too small.
    """
    folder, facts = read_facts(run)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    free = free_bytes(to)
    if size > free:
        raise DoesNotFit(
            Problem(
                where=str(to),
                what=f"the model needs {format_bytes(size)}, {format_bytes(free)} are free",
                right=f"{format_bytes(size)} on one disk",
                type="--to FOLDER_ON_A_LARGER_DISK",
            )
        )
    temporary = to.with_name(f".writing-{to.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(folder, temporary)
    write_card(temporary, run, facts)
    temporary.rename(to)
    return to

"""A trained model as a folder to hand on: weights, tokenizer, label names, a model card. No torch."""

import shutil
from pathlib import Path

from launcher.export.card import write_card
from launcher.export.new_folder import new_folder
from launcher.export.whole_files import require_whole
from launcher.train.final_model import read_facts


def export(run: Path, place: Path) -> Path:
    """Copy the run's final model to `place`, a whole path, with a card; whole or not at all.

    Raises ExportError for a run without a finished model, and where the copy fails; DoesNotFit where the
    disk is too small.
    """
    folder, facts = read_facts(run)
    require_whole(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    with new_folder(place, needed_bytes=size, name="the model", option="--to") as temporary:
        shutil.copytree(folder, temporary, dirs_exist_ok=True)
        write_card(temporary, run if run != folder else folder.parent, facts, name=place.name)
    return place

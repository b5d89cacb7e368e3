"""Which trained models can be merged: those whose adapter is a change of linear layers. No torch."""

import json
import shlex
from pathlib import Path

from launcher.errors import ExportError, Problem
from launcher.export.whole_files import require_whole
from launcher.train.final_model import read_facts

METHODS = ("LORA", "IA3")


def require_mergeable(run: Path) -> Path:
    """The adapter's folder. Raises ExportError for a run without one, or whose method cannot be merged."""
    folder, _ = read_facts(run)
    path = folder / "adapter_config.json"
    if not path.is_file():
        what = "there is no adapter here: every weight was trained, so the folder is the whole model already"
        raise _refused(folder, what, f"launcher export {shlex.quote(str(run))} --to FOLDER")
    kind = json.loads(path.read_text(encoding="utf-8"))["peft_type"]
    if kind not in METHODS:
        what = f"{kind} cannot be merged into weights: it is more than a change of linear layers"
        raise _refused(
            folder, what, f"launcher predict {shlex.quote(str(run))} TEXT (the adapter stays beside its base)"
        )
    require_whole(folder)
    return folder


def _refused(folder: Path, what: str, type_: str) -> ExportError:
    return ExportError(Problem(where=str(folder), what=what, right="a run of method lora or ia3", type=type_))

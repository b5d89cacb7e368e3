"""`resume.json`: what a continued run changes, noted by a run that could not go on as it was.

It lies in the run folder. Bounds on a batch are only ever lowered by it, and a value that is typed on the
command line has the last word.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.backends.render import json_text
from launcher.errors import Problem, ResumeMismatch
from launcher.plan.write import write_file
from launcher.recipe.load import LoadedRecipe

NAME = "resume.json"


def write_resume(folder: Path, *, reason: str, changes: Mapping[str, Any], typed: str) -> Path:
    """Note why the run stopped, recipe keys to change, and the line to type. Whole or not at all."""
    path = folder / NAME
    write_file(path, json_text({"reason": reason, "changes": dict(changes), "type": typed}))
    return path


def resume_changes(folder: Path, loaded: LoadedRecipe) -> tuple[dict[str, Any], str]:
    """The changes that apply to this recipe, and the reason; nothing where there is no such file.

    Raises ResumeMismatch where the file cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        return {}, ""
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
        changes, reason = dict(noted["changes"]), str(noted["reason"])
    except (ValueError, KeyError, TypeError) as error:
        raise ResumeMismatch(
            Problem(
                where=str(path),
                what=f"this file cannot be read ({error})",
                right='{"reason": ..., "changes": {key: value}, "type": ...}, as a run writes it',
                type=f"rm {path}, and give the change yourself: per_device_train_batch_size=N",
            )
        ) from error
    return {key: value for key, value in changes.items() if _applies(loaded, key, value)}, reason


def _applies(loaded: LoadedRecipe, key: str, value: Any) -> bool:
    """Not where the command line decides, nor where the recipe already asks for less."""
    origin = loaded.origins.get(key)
    if origin is not None and origin.kind == "command line":
        return False
    section, _, leaf = key.rpartition(".")
    now = getattr(getattr(loaded.recipe, section, None), leaf, None)
    is_bound = isinstance(now, int) and not isinstance(now, bool)
    return not (is_bound and now <= value)

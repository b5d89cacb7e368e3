"""The final model folder in Hugging Face layout, written whole, and read back by name."""

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launcher.errors import ExportError, Problem
from launcher.train.checkpoint_files import put_in_place, steps_saved
from launcher.train.save_failure import SaveFailed, failure_of, require_room

FACTS = "launcher.json"
SHARD = "5GB"  # most bytes of one weights file
_ERRNO = re.compile(r"os error (\d+)")
# How far the files may be from what was predicted: headers, and small tensors that the library adds.
_TOLERANCE, _SLACK_BYTES = 0.02, 2**16


def write_model(
    folder: Path,
    *,
    model: Any,
    tokenizer: Any,
    weights: dict[str, Any],
    facts: dict[str, Any],
    expected: Mapping[str, tuple[int, ...]] | None = None,
    is_whole: bool = False,
) -> None:
    """Write model (or adapter), tokenizer and `launcher.json` beside their place, then rename.

    `weights` by the model's own names; `facts` is what prediction needs to know about training; `expected`:
    the shape that each weight must have; `is_whole`: the files hold exactly these weights. Raises ExportError
    where weights or files are not what they should be, SaveFailed where the disk fails; what was there before
    is then still there.
    """
    require_shapes(folder, weights, expected or {})
    temporary = folder.with_name(f".writing-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    size = sum(tensor.nbytes for tensor in weights.values())
    try:
        require_room(folder, size if is_whole else 0)
        _write(temporary, model, tokenizer, weights, facts)
        _check(temporary, size if is_whole else None)
        put_in_place(temporary, folder)
    except Exception as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if (failed := system_error(error)) is None:
            raise
        raise _not_exported(failed, folder, size) from None


def _write(
    temporary: Path, model: Any, tokenizer: Any, weights: dict[str, Any], facts: dict[str, Any]
) -> None:
    temporary.mkdir(parents=True)
    model.save_pretrained(temporary, state_dict=weights, max_shard_size=SHARD)
    tokenizer.save_pretrained(temporary)
    (temporary / FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def require_shapes(folder: Path, weights: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ExportError where a weight is missing, or a backend's placeholder stands for the whole tensor."""
    missing = sorted(expected.keys() - weights.keys())
    odd = [
        f"{name} is {list(weights[name].shape)} instead of {list(shape)}"
        for name, shape in expected.items()
        if name in weights and tuple(weights[name].shape) != shape
    ]
    if missing or odd:
        words = [f"{len(missing)} weights are missing ({missing[0]}, ...)"] if missing else []
        words += [f"{len(odd)} weights have another shape ({odd[0]})"] if odd else []
        raise ExportError(
            Problem(
                where=str(folder),
                what="; ".join(words),
                right=f"{len(expected)} whole weights, as the model's configuration implies",
                type="--resume auto (the checkpoints are untouched)",
            )
        )


def _check(folder: Path, predicted_bytes: int | None) -> None:
    """Every tensor of every file has elements, and together they have the size that was predicted."""
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    empty = []
    for path in files:
        with safe_open(path, framework="pt") as held:
            empty += [key for key in held.keys() if 0 in held.get_slice(key).get_shape()]  # noqa: SIM118
    size = sum(path.stat().st_size for path in files)
    if not files or empty:
        raise _damaged(folder, f"the saved model has no weights in {', '.join(empty[:3]) or 'any file'}")
    allowed = _TOLERANCE * (predicted_bytes or 0) + _SLACK_BYTES
    if predicted_bytes is not None and abs(size - predicted_bytes) > allowed:
        raise _damaged(folder, f"the saved model has {size} bytes, {predicted_bytes} were predicted")


def _damaged(folder: Path, what: str) -> ExportError:
    return ExportError(
        Problem(
            where=str(folder),
            what=what,
            right="safetensors files whose tensors all have elements, within 2 % of the predicted size",
            type="--resume auto (the checkpoints are untouched)",
        )
    )


def system_error(error: Exception) -> OSError | None:
    """What the system said, None where it was no error of the system's.

    safetensors' own writer hides it in a text.
    """
    if isinstance(error, OSError):
        return error
    found = _ERRNO.search(str(error))
    if found is None:
        return None
    number = int(found.group(1))
    return OSError(number, os.strerror(number))


def _not_exported(error: OSError, folder: Path, size: int) -> SaveFailed:
    failure = failure_of(error, name="the trained model", folder=folder.parent, needed_bytes=size, rank=0)
    return SaveFailed(
        Problem(
            where=str(folder),
            what=failure.what(),
            right="the checkpoints are kept; --resume continues from the newest one and exports again",
            type=f"{failure.type()}; then the same command with --resume",
        )
    )


def read_facts(run: Path) -> tuple[Path, dict[str, Any]]:
    """The model folder of a run (or the folder itself) and its facts.

    Raises ExportError where there is no finished model, or where what stands beside it cannot be read.
    """
    for folder in (run / "final", run):
        path = folder / FACTS
        if path.is_file():
            return folder, _read(path)
    raise _no_model(run)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"cannot be read: {error}") from error
    missing = [key for key in ("task", "model", "label_names", "weights_dtype") if key not in found]
    if missing:
        raise _unreadable(path, f"says nothing of {', '.join(missing)}")
    return dict(found)


def _unreadable(path: Path, what: str) -> ExportError:
    return ExportError(
        Problem(
            where=str(path),
            what=f"this file {what}",
            right=f"the {FACTS} that training wrote, whole",
            type="copy the model's folder again; or the run's command with --resume, which exports it again",
        )
    )


def _no_model(run: Path) -> ExportError:
    what = "there is no trained model here" if run.exists() else "there is no such folder"
    right = f"a run folder that has final/{FACTS}, such as runs/quickstart"
    type_ = "launcher run quickstart, then launcher predict runs/quickstart TEXT"
    around = run.resolve().parent
    if run.name.startswith("checkpoint-") and (around / "final" / FACTS).is_file():
        what, right = "this is a checkpoint, for going on from", "the run's folder, whose model is in final/"
        type_ = f"launcher predict {shlex.quote(str(run.parent))} TEXT"
    elif (run / "recipe.yaml").is_file():
        steps = steps_saved(run)
        held = f"its newest checkpoint is of step {max(steps)}" if steps else "it has no checkpoint yet"
        what = f"there is no trained model here: this run has not ended ({held})"
        right = f"a run that has ended, which has final/{FACTS}"
        type_ = "the command that started it, with --resume"
    return ExportError(Problem(where=str(run), what=what, right=right, type=type_))

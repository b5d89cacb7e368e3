"""Whether an exported folder, read by a process that sees it alone, holds the model that was trained."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launcher.adapters.options import METHODS
from launcher.recipe.schema import Recipe
from launcher.rehearse import said
from launcher.rehearse.processes import Processes
from launcher.rehearse.rows import layout_of, made
from launcher.rehearse.verdict import StageFailed, Verdict

NUM_TEXTS = 8
# Both sides compute in fp32 with the same operations: they differ by rounding, if at all.
TOLERANCE = 1e-6


def check_export(recipe: Recipe, folder: Path, run: Path, processes: Processes, verdict: Verdict) -> None:
    """Logits by the checkpoint's tensors here, by the exported folder there; they must be equal.

    What was found goes into the verdict. Raises StageFailed where they differ.
    """
    texts = _texts(recipe)
    file, out = folder / "texts.json", folder / "logits.safetensors"
    file.write_text(json.dumps(texts), encoding="utf-8")
    alone = Path(shutil.copytree(run / "final", folder / "export", dirs_exist_ok=True))
    keeps_base = not METHODS.get(recipe.adapter.method).trains_base
    words = [str(alone), str(file), str(out)]
    from launcher.rehearse import logits_torch

    with (
        out_of_sight(folder, ["runs"] if keeps_base else ["runs", "model"]) as hidden,
        processes.reload(words, folder / "reload.log") as started,
    ):
        trained, untrained = logits_torch.reference(recipe, hidden, run.name, texts)
        code = started.wait()
    if code != 0:
        raise StageFailed(f"the exported folder does not reload:\n{said.message(started.text)}")
    verdict.logits_difference = logits_torch.largest_difference(trained, logits_torch.read(out))
    _require_equal(verdict.logits_difference, moved=logits_torch.largest_difference(trained, untrained))
    what = "adapter reloaded beside its base model" if keeps_base else "reloaded alone"
    verdict.export = (
        f"{what}, logits of {NUM_TEXTS} rows equal to the checkpoint's "
        f"(largest relative difference {verdict.logits_difference:.1e})"
    )


def _require_equal(difference: float, *, moved: float) -> None:
    if moved <= 10 * TOLERANCE:
        raise StageFailed(f"training moved the logits by {moved:.1e} only: nothing was compared")
    if difference > TOLERANCE:
        raise StageFailed(
            f"logits of the reloaded model differ by {difference:.1e} from the trained one's "
            f"(training moved them by {moved:.1e})"
        )


@contextmanager
def out_of_sight(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Gives the folder where these lie meanwhile, so that nothing can be read by the paths it had."""
    hidden = folder / ".hidden"
    hidden.mkdir()
    for name in names:
        (folder / name).rename(hidden / name)
    try:
        yield hidden
    finally:
        for name in names:
            (hidden / name).rename(folder / name)
        hidden.rmdir()


def _texts(recipe: Recipe) -> list[str]:
    """Texts that no training row is, of different lengths."""
    layout = layout_of(recipe)
    rows = made(layout, NUM_TEXTS, seed=7, labels=recipe.data.labels or ("a", "b"))
    return [_asked(row) for row in rows]


def _asked(row: Mapping[str, Any]) -> str:
    """What a row asks the model, whatever its layout."""
    first = row["turns"][0] if "turns" in row else {}
    asked = row.get("text") or row.get("instruction") or row.get("prompt")
    return str(asked or first.get("content") or first["value"])

"""The final model folder in Hugging Face layout, written whole, and read back by name."""

import json
import shutil
from pathlib import Path
from typing import Any

from launcher.errors import ExportError, Problem

FACTS = "launcher.json"


def write_model(
    folder: Path, *, model: Any, tokenizer: Any, weights: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Write model (or adapter), tokenizer and `launcher.json` beside their place, then rename.

    `weights` by the model's own names; `facts` is what prediction needs to know about training.
    """
    temporary = folder.with_name(f".writing-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    model.save_pretrained(temporary, state_dict=weights)
    tokenizer.save_pretrained(temporary)
    (temporary / FACTS).write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _check(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.replace(folder)


def _check(folder: Path) -> None:
    """Every tensor of every file has elements: an adapter saved empty is found here, not at merge time."""
    from safetensors import safe_open

    files = sorted(folder.glob("*.safetensors"))
    empty = []
    for path in files:
        with safe_open(path, framework="pt") as held:
            empty += [key for key in held.keys() if 0 in held.get_slice(key).get_shape()]  # noqa: SIM118
    if not files or empty:
        raise ExportError(
            Problem(
                where=str(folder),
                what=f"the saved model has no weights in {', '.join(empty[:3]) or 'any file'}",
                right="safetensors files whose tensors all have elements",
                type="--resume auto (the checkpoints are untouched)",
            )
        )


def read_facts(run: Path) -> tuple[Path, dict[str, Any]]:
    """The model folder of a run (or the folder itself) and its facts.

    Raises ExportError where there is no finished model.
    """
    for folder in (run / "final", run):
        path = folder / FACTS
        if path.is_file():
            facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return folder, facts
    raise ExportError(
        Problem(
            where=str(run),
            what="there is no trained model here" if run.exists() else "there is no such folder",
            right=f"a run folder that has final/{FACTS}, such as runs/quickstart",
            type="launcher run quickstart, then launcher predict runs/quickstart TEXT",
        )
    )

"""What every rehearsed rank would import and build for itself, done once in the process that forks them.

Half a rank's life is imports that only a run needs, and patterns that transformers compiles when it reads a
model. Nothing here computes a gradient: autograd's threads would be missing in the forks.
"""

import importlib
import tempfile
from collections.abc import Iterable
from pathlib import Path
from threading import active_count

from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.models.load_torch import load_model
from launcher.models.options import ModelOptions
from launcher.recipe.schema import Recipe
from launcher.registry import load_attribute
from launcher.rehearse.model_torch import write_model

# Imported in the middle of a run, by us or by a library.
_LATER = (
    "launcher.process.rank_process",
    "launcher.process.prepare",
    "launcher.process.siblings",
    "launcher.process.supervise",
    "launcher.rehearse.logits_torch",
    "launcher.rehearse.reload_torch",
    "peft.utils.transformers_weight_conversion",
    "torch.utils.tensorboard.writer",
)


def import_pieces() -> None:
    """Every method and backend, and what a run imports on its way."""
    for method in METHODS:
        load_attribute(method.apply)
    for backend in BACKENDS:
        load_attribute(backend.connect)
    for name in _LATER:
        importlib.import_module(name)


def build_models(recipes: Iterable[Recipe]) -> int:
    """Write and read a tiny model of every architecture once; how many there were."""
    seen: set[tuple[str, str, bool]] = set()
    with tempfile.TemporaryDirectory(prefix="launcher-warm-") as name:
        for recipe in recipes:
            folder = Path(name) / str(len(seen))
            model = recipe.model
            kind = (model.model_name_or_path, recipe.task, model.is_quantised)
            if kind in seen:
                continue
            seen.add(kind)
            write_model(model, folder, task=recipe.task, seed=0, texts=["a few words to learn from"])
            tiny = {
                "model_name_or_path": str(folder),
                "pip_package": None,
                "gguf_file": None,
                "revision": None,
            }
            _read(model.model_copy(update=tiny), recipe.task)
    assert active_count() == 1, "a thread of this process would be missing in its forks"
    return len(seen)


def _read(options: ModelOptions, task: str) -> None:
    labels = ("a", "b") if task == "classification" else ()
    load_model(options, task=task, dtype="float32", label_names=labels, pad_token_id=1)

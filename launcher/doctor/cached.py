"""Whether a recipe's model is on this machine, whole; no network is asked."""

from collections.abc import Iterator
from pathlib import Path

from launcher.errors import RecipeError
from launcher.models import modelscope
from launcher.models.download import cache_folder
from launcher.models.options import ModelOptions
from launcher.models.source import find_model, is_hub_id

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


def is_here(model: ModelOptions) -> bool:
    """Whether nothing must be fetched."""
    return not any(missing(model))


def missing(model: ModelOptions) -> Iterator[str]:
    """What of it is not here, in words."""
    if not is_hub_id(model):
        yield from _folder_faults(model)
        return
    name = model.model_name_or_path
    folder = cache_folder(name)
    if model.on_modelscope and modelscope.cached(model.on_modelscope):
        return
    snapshots = [path.parent for path in folder.glob("snapshots/*/config.json")]
    if not snapshots:
        yield f"{name} is not in the hub's cache ({folder.parent})"
    elif not any(has_weights(each) for each in snapshots):
        yield f"{name} is in the hub's cache without weights"
    if cut := [*folder.glob("blobs/*.incomplete")]:
        yield f"{len(cut)} file(s) of {name} are cut short in the hub's cache"


def _folder_faults(model: ModelOptions) -> Iterator[str]:
    try:
        source = find_model(model)
    except RecipeError as error:
        yield from (problem.what for problem in error.problems)
        return
    if not has_weights(Path(source.location)):
        yield f"{source.location} holds no weights"


def has_weights(folder: Path) -> bool:
    """Whether a file of weights is there, and links lead somewhere."""
    return any(path.is_file() for pattern in _WEIGHTS for path in folder.glob(pattern))

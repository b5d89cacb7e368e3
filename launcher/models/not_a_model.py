"""A path that is given as a model and is none: what it is instead, and the path or verb that was meant."""

import json
from pathlib import Path

from launcher.errors import Problem, RecipeError

_KEY = "model.model_name_or_path"


def no_model_in(folder: Path, wanted: str) -> RecipeError:
    """The error for a folder without `wanted`, by what lies in it."""
    right, typed = what_it_is(folder)
    return RecipeError(
        Problem(
            where=_KEY,
            what=f"{folder} is not a model folder: it has no {wanted}",
            right=right or "a folder in Hugging Face layout: config.json, weights, tokenizer files",
            type=typed or f"{_KEY}=<folder that holds config.json>",
        )
    )


def what_it_is(folder: Path) -> tuple[str, str]:
    """What is right and what to type; empty where nothing is known of the folder."""
    adapter = folder / "adapter_config.json"
    if adapter.is_file():
        base = _base_of(adapter)
        right = "an adapter is no model by itself: its base, or both merged into one folder"
        return right, f"{_KEY}={base}, or launcher merge {folder.parent}"
    final = folder / "final"
    if (final / "config.json").is_file():
        return "a run's model lies in its final/", f"{_KEY}={final}"
    if (final / "adapter_config.json").is_file():
        return "this run trained an adapter: merged, it is a model", f"launcher merge {folder}"
    if snapshots := sorted(folder.glob("snapshots/*/config.json")):
        return "the hub's cache keeps a model's files one level deeper", f"{_KEY}={snapshots[-1].parent}"
    if held := sorted(folder.glob("*.gguf")):
        return "a GGUF file is named by itself", f"{_KEY}={folder} model.gguf_file={held[0].name}"
    if (folder / "params.json").is_file() or list(folder.glob("consolidated.*.pth")):
        right = "Meta's own form of the weights is not read: the same model in Hugging Face layout"
        return right, "the repository without -original, or transformers' convert_llama_weights_to_hf.py"
    if below := sorted(folder.glob("*/config.json")):
        return "the model lies one folder deeper", f"{_KEY}={below[0].parent}"
    return "", ""


def _base_of(adapter: Path) -> str:
    try:
        found = json.loads(adapter.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "<its base>"
    return (
        str(found.get("base_model_name_or_path") or "<its base>") if isinstance(found, dict) else "<its base>"
    )


def no_folder(path: Path) -> RecipeError:
    """The error for a path where no folder is."""
    right = "a folder in Hugging Face layout, or a hub id such as FacebookAI/roberta-large"
    typed, what = f"{_KEY}=<folder or hub id>", f"there is no folder {path}"
    if path.is_file():
        what = f"{path} is a file"
        right = "the folder around it, and the file's name where it is a GGUF"
        typed = f"{_KEY}={path.parent}" + (f" model.gguf_file={path.name}" * (path.suffix == ".gguf"))
    return RecipeError(Problem(where=_KEY, what=what, right=right, type=typed))

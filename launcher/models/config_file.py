"""Finds a model's config.json: installed package, folder, hub's cache, catalogue, and the hub when asked.

Unlike loading, planning must not wait for a network: the hub is asked only when the caller says so.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.errors import CannotTell, Problem
from launcher.models import catalogue
from launcher.models.not_a_model import what_it_is
from launcher.models.options import ModelOptions
from launcher.models.source import HUB, hub_answers, is_offline, package_folder

_TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class FoundConfig:
    """A configuration and, in words, where it was found."""

    values: dict[str, Any]
    source: str


def find_config(options: ModelOptions, *, ask_hub: bool = False) -> dict[str, Any]:
    """The model's configuration. Raises CannotTell where it is not on this machine and not to be had."""
    return locate_config(options, ask_hub=ask_hub).values


def locate_config(options: ModelOptions, *, ask_hub: bool = False) -> FoundConfig:
    """The model's configuration and its place, like `find_config`."""
    name = options.model_name_or_path
    folder = _folder(options)
    if folder is not None and (folder / "config.json").is_file():
        return FoundConfig(values=_read(folder / "config.json"), source=str(folder / "config.json"))
    if folder is None and (cached := cached_config(name, options.revision)):
        return FoundConfig(values=_read(cached), source=f"{name} in the hub's cache")
    if known := catalogue.config(name):
        return FoundConfig(values=known, source=f"{name} in the catalogue of known models")
    if folder is None and ask_hub and _can_ask():
        return FoundConfig(values=_download(options), source=f"{name} on the hub")
    raise _not_found(options, folder, ask_hub=ask_hub)


def _folder(options: ModelOptions) -> Path | None:
    """The installed package's folder or the local one; None for a hub id."""
    if options.pip_package and (installed := package_folder(options.pip_package)):
        return installed
    path = Path(options.model_name_or_path).expanduser()
    is_path = options.model_name_or_path.startswith(("/", "./", "../", "~"))
    return path if is_path or path.is_dir() else None


def cached_config(name: str, revision: str | None = None) -> Path | None:
    """The config.json of that hub id in the hub's cache: of the revision, else of main, else the newest."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE", home / "hub"))
    model = cache / f"models--{name.replace('/', '--')}"
    reference = model / "refs" / (revision or "main")
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    if commit and (exact := model / "snapshots" / commit / "config.json").is_file():
        return exact
    found = (
        []
        if revision
        else sorted(model.glob("snapshots/*/config.json"), key=lambda each: each.stat().st_mtime)
    )
    return found[-1] if found else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return _as_config(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), error) from error


def _as_config(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object of keys and values")
    return found


def _can_ask() -> bool:
    return not is_offline() and hub_answers(os.environ.get("HF_ENDPOINT") or HUB)


def _download(options: ModelOptions) -> dict[str, Any]:
    import urllib.error  # Slow to import, and rarely needed.
    import urllib.request

    endpoint = (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
    name, revision = options.model_name_or_path, options.revision or "main"
    address = f"{endpoint}/{name}/resolve/{revision}/config.json"
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
            return _as_config(answer.read().decode("utf-8"))
    except urllib.error.HTTPError as error:
        error.close()
        raise _unreadable(address, error) from error
    except (OSError, ValueError) as error:
        raise _unreadable(address, error) from error


def _unreadable(place: str, error: Exception) -> CannotTell:
    return CannotTell(
        Problem(
            where=place,
            what=f"the model's configuration cannot be read: {error}",
            right="a config.json in Hugging Face layout",
            type="model.model_name_or_path=<folder that holds config.json>",
        )
    )


def _not_found(options: ModelOptions, folder: Path | None, *, ask_hub: bool) -> CannotTell:
    name = options.model_name_or_path
    if folder is not None:
        said = f"{folder} holds no config.json" if folder.is_dir() else f"there is no folder {folder}"
    else:
        asked = "and the hub does not answer" if ask_hub else "and the hub was not asked"
        said = f"'{name}' is no folder, not in the hub's cache, not in the catalogue, {asked}"
    right, typed = what_it_is(folder) if folder is not None and folder.is_dir() else ("", "")
    if not typed:
        near = catalogue.nearest_names(name)
        right = "a folder with the model's config.json (weights are not needed)"
        right += f"; known models of a like name: {', '.join(near)}" if near else ""
        typed = f"model.model_name_or_path={near[0] if near else '<folder that holds config.json>'}"
        typed += "" if folder is not None or ask_hub else ", or --ask-hub"
    return CannotTell(
        Problem(
            where="model.model_name_or_path",
            what=f"the size of the model is not known: {said}",
            right=right,
            type=typed,
        )
    )

"""The shipped recipes as a list: few facts of each, read without building a recipe.

A recipe's facts come from the index beside it (`recipes/index.json`, written by
`scripts/make_recipe_table.py`) as long as the file and its parents are byte for byte those that were
indexed; else from the file itself.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from launcher.errors import LauncherError
from launcher.recipe import library

INDEX = "index.json"
UNKNOWN = "?"


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One line of the list. `peak_gib`: planned for one card, None where nobody has planned it.

    `method` says qlora where LoRA goes over 4-bit weights. `gpu` is `any` where no card is named.
    """

    name: str
    summary: str
    task: str = UNKNOWN
    method: str = UNKNOWN
    gpu: str = UNKNOWN
    gpus: int = 1
    backend: str = UNKNOWN
    model: str = UNKNOWN
    peak_gib: float | None = None

    @property
    def card(self) -> str:
        """The card, and how many of them where there are several."""
        return self.gpu if self.gpus == 1 else f"{self.gpus}x {self.gpu}"


def listed() -> list[Listed]:
    """Every shipped recipe; one that cannot be read says so in its summary."""
    known = read_index()
    digests: dict[str, str] = {}
    return [_of_index(known.get(name), digests) or read_listed(name) for name in library.names()]


def read_index() -> Mapping[str, Any]:
    """The index by name; empty where there is none, or none that can be read."""
    try:
        found = json.loads((library.folder() / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def entry(row: Listed, peak_gib: float | None) -> dict[str, Any]:
    """What the index keeps of a recipe: its line, and the digests of the files that it was read from."""
    files = {_inside(path): digest(path) for path in _files(row.name)}
    return {**asdict(replace(row, peak_gib=peak_gib)), "files": files}


def read_listed(name: str) -> Listed:
    """A recipe's line from its file and its parents."""
    from launcher.recipe.parents import lineage  # the YAML reader is slow to import: only where it is needed

    try:
        documents = [
            {key: entry.plain() for key, entry in document.entries.items()}
            for document in lineage(library.find(name))
        ]
    except LauncherError as error:
        count = len(error.problems)
        summary = f"cannot be used: launcher check {name} ({count} problem{'s' * (count != 1)})"
        return Listed(name=name, summary=summary)
    return _read(name, documents)


def _read(name: str, documents: list[dict[str, Any]]) -> Listed:
    model, adapter = _merged(documents, "model"), _merged(documents, "adapter", "method")
    hardware, backend = _merged(documents, "hardware"), _merged(documents, "backend", "name")
    gpus = hardware.get("gpus", 1)
    gpus = gpus if isinstance(gpus, int) else 1
    method = str(adapter.get("method", "full"))
    return Listed(
        name=name,
        summary=str(documents[-1].get("summary", "")),
        task=str(_last(documents, "task", UNKNOWN)),
        method=f"q{method}" if method == "lora" and model.get("load_in_4bit") else method,
        gpu=str(hardware.get("gpu") or "any"),
        gpus=gpus,
        backend=str(backend.get("name", "single_gpu" if gpus < 2 else "multi_gpu")),
        model=str(model.get("model_name_or_path", UNKNOWN)),
    )


def _last(documents: Iterable[dict[str, Any]], key: str, default: object) -> object:
    return next((document[key] for document in [*documents][::-1] if key in document), default)


def _merged(documents: Iterable[dict[str, Any]], section: str, bare: str = "") -> dict[str, Any]:
    """A section laid together; a bare word stands for the key `bare`."""
    found: dict[str, Any] = {}
    for document in documents:
        given = document.get(section)
        if isinstance(given, dict):
            found |= given
        elif isinstance(given, str) and bare:
            found[bare] = given
    return found


def _of_index(found: Any, digests: dict[str, str]) -> Listed | None:
    """The indexed line, None where a file has changed since, or the index is not one of ours."""
    try:
        facts = dict(found)
        for name, known in facts.pop("files").items():
            if name not in digests:
                digests[name] = digest(library.folder() / name)
            if digests[name] != known:
                return None
        return Listed(**facts)
    except (TypeError, KeyError, AttributeError, ValueError, OSError):
        return None


def digest(path: Path) -> str:
    """The file's SHA-256, its first 16 digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _files(name: str) -> list[Path]:
    from launcher.recipe.parents import lineage

    return [document.path for document in lineage(library.find(name))]


def _inside(path: Path) -> str:
    return path.relative_to(library.folder().resolve()).as_posix()

"""One entry of the cache: token stores as plain arrays in files, mapped into memory when opened.

Plain .npy files, because the stores are flat arrays already: opening one maps it, without a copy and
without another library. `entry.json` is written last and names every file with its size and hash.
"""

import hashlib
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from launcher.data.atomic import write_text
from launcher.data.cache_key import KeyParts
from launcher.data.examples import Examples
from launcher.data.number_file import forget
from launcher.data.split import Splits
from launcher.data.tokens import TokenStore

ENTRY = "entry.json"
_FORMAT = 1
_ARRAYS = ("input_ids", "offsets", "labels", "trained", "num_targets", "sources", "segments", "token_types")
_ROWS = ("train", "evaluation")
_HEADER = {"fortran_order": False}
_BLOCK_BYTES = 2**20


@dataclass(frozen=True, kw_only=True)
class Content:
    """Tokens of both splits, and what is known of the rows that they came from, without the rows."""

    splits: Splits
    train: TokenStore
    evaluation: TokenStore | None


class Damaged(Exception):
    """An entry that is not what was written."""


def without_rows(splits: Splits) -> Splits:
    """The same facts; the texts may go."""
    empty = Examples(
        layout=splits.layout, texts={}, labels=None, lines=[], path=splits.train.path, utterances=None
    )
    return replace(splits, train=empty, evaluation=None)


def write_entry(folder: Path, parts: KeyParts, content: Content) -> None:
    """Write all files; `folder` must be there. Raises OSError."""
    stores = {"train": content.train, "evaluation": content.evaluation}
    arrays = {
        f"{split}.{name}.npy": array
        for split, store in stores.items()
        for name in _ARRAYS
        if (array := getattr(store, name, None)) is not None
    }
    # Side by side: most of it is waiting until the disk has a file.
    with ThreadPoolExecutor(len(arrays)) as pool:
        paths = [folder / name for name in arrays]
        files = dict(zip(arrays, pool.map(_saved, paths, arrays.values()), strict=True))
    facts = {
        "format": _FORMAT,
        "parts": asdict(parts),
        "path": str(content.splits.train.path),
        "splits": _facts(content.splits),
        "stores": {name: store and _plain(store) for name, store in stores.items()},
        "files": files,
    }
    write_text(folder / ENTRY, json.dumps(facts, indent=1))


def _saved(path: Path, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Write an array as .npy, a block at a time; the file's size and SHA-256."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {**_HEADER, "shape": array.shape, "descr": array.dtype.str})
    digest = hashlib.sha256(head.getvalue())
    rows = max(1, _BLOCK_BYTES // max(1, array.dtype.itemsize * array[:1].size))
    with path.open("wb") as file:
        file.write(head.getvalue())
        for start in range(0, len(array), rows):
            block = np.ascontiguousarray(array[start : start + rows]).data.cast("B")
            digest.update(block)
            file.write(block)
            forget(array)
        file.flush()
        os.fsync(file.fileno())
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _facts(splits: Splits) -> dict[str, Any]:
    return {field.name: getattr(splits, field.name) for field in fields(splits) if field.name not in _ROWS}


def _plain(store: TokenStore) -> dict[str, Any]:
    return {field.name: getattr(store, field.name) for field in fields(store) if field.name not in _ARRAYS}


def parts_of(folder: Path) -> dict[str, str]:
    """What an entry was made from; empty where it cannot be read."""
    try:
        found: dict[str, str] = json.loads((folder / ENTRY).read_text(encoding="utf-8"))["parts"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found


def read_entry(folder: Path, parts: KeyParts, *, verify: bool) -> Content | None:
    """The content, its arrays mapped; None where there is no entry. Raises Damaged.

    What is opened must say that it was made from just these parts. `verify` also hashes every file.
    """
    try:
        facts = json.loads((folder / ENTRY).read_text(encoding="utf-8"))
        if facts["format"] != _FORMAT or facts["parts"] | {"place": ""} != asdict(parts) | {"place": ""}:
            raise Damaged("it was made from something else")
        for name, entry in facts["files"].items():
            _check(folder / name, entry, verify=verify)
        stores = {name: _read_store(folder, name, facts) for name in _ROWS}
        assert stores["train"] is not None
        return Content(splits=_splits(facts), train=stores["train"], evaluation=stores["evaluation"])
    except (FileNotFoundError, NotADirectoryError) as error:
        if not folder.exists():
            return None
        raise Damaged(f"{Path(str(error.filename)).name} is missing") from error
    except OSError as error:
        raise Damaged(error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise Damaged(f"{ENTRY} is damaged") from error


def _check(path: Path, entry: dict[str, Any], *, verify: bool) -> None:
    if path.stat().st_size != entry["bytes"]:
        raise Damaged(f"{path.name} has another size")
    if verify and _hash(path) != entry["sha256"]:
        raise Damaged(f"{path.name} has another content")


def _read_store(folder: Path, split: str, facts: dict[str, Any]) -> TokenStore | None:
    plain = facts["stores"][split]
    if plain is None:
        return None
    arrays: dict[str, Any] = {}
    for name in _ARRAYS:
        file = f"{split}.{name}.npy"
        # asarray: the plain array class indexes faster than memmap, over the same mapped pages.
        arrays[name] = np.asarray(np.load(folder / file, mmap_mode="r")) if file in facts["files"] else None
    return TokenStore(**_tuples(plain), **arrays)


def _splits(facts: dict[str, Any]) -> Splits:
    path = Path(facts["path"])
    rows = Examples(layout=facts["splits"]["layout"], texts={}, labels=None, lines=[], path=path)
    return Splits(train=rows, evaluation=None, **_tuples(facts["splits"]))


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}

"""Folders of checkpoints: which are whole, which may go, what a killed run has left. No torch.

A checkpoint is written under another name and renamed at the very end; it is removed by being renamed
first. So a folder called `checkpoint-N` was whole once, and `fault` tells whether it still is.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

MANIFEST, LOOP = "manifest.json", "loop.json"
WRITING, DELETING = ".writing-", ".deleting-"
SUPERSEDED = "superseded-"
_NAME = re.compile(r"checkpoint-(\d+)")


def place_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of that step lies in a run folder."""
    return folder / f"checkpoint-{step}"


def steps_saved(folder: Path) -> list[int]:
    """Steps of the checkpoint folders there, ascending, whole or not."""
    found = (_NAME.fullmatch(path.name) for path in folder.glob("checkpoint-*"))
    return sorted(int(match.group(1)) for match in found if match)


def entry(path: Path) -> dict[str, Any]:
    """Size and hash of a file as it lies on the disk, for a manifest."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def read_manifest(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself: step, backend, ranks, files. Raises OSError or ValueError."""
    manifest: dict[str, Any] = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def fault(checkpoint: Path, *, sizes_only: bool = False) -> str | None:
    """What is wrong with a checkpoint; None where every file has its size and hash."""
    try:
        for name, written in read_manifest(checkpoint)["files"].items():
            if Path(name).name != name:
                return f"{MANIFEST} names a file outside its folder"
            if (checkpoint / name).stat().st_size != written["bytes"]:
                return f"{name} has another size than the manifest says"
            if not sizes_only and entry(checkpoint / name) != written:
                return f"{name} has another content than the manifest says"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except OSError as error:
        return f"{Path(str(error.filename)).name} cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    return None


def newest_whole(folder: Path, *, sizes_only: bool = False) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, and a line for each newer one that was passed over."""
    passed: list[str] = []
    for step in reversed(steps_saved(folder)):
        path = place_of(folder, step)
        reason = fault(path, sizes_only=sizes_only)
        if reason is None:
            return path, passed
        passed.append(f"{path.name} is not whole ({reason}): passed over")
    return None, passed


def prune(folder: Path, *, limit: int | None, keep: int | None, newest: int | None = None) -> list[int]:
    """Remove the oldest checkpoints beyond `limit`; the steps removed.

    Never `newest` (the one just written; else the highest step that is whole), never the one of step
    `keep`. Folders that are not whole do not count as kept, and nothing goes where nothing whole is left.
    """
    if limit is None:
        return []
    steps = steps_saved(folder)
    whole = [step for step in steps if fault(place_of(folder, step), sizes_only=True) is None]
    if newest is None:
        newest = next((step for step in reversed(whole) if fault(place_of(folder, step)) is None), None)
    if newest not in whole:
        return []
    gone = [step for step in whole[: max(0, len(whole) - limit)] if step not in (newest, keep)]
    gone += [step for step in steps if step < newest and step not in whole]
    for step in gone:
        remove(place_of(folder, step))
    return sorted(gone)


def remove(path: Path) -> None:
    """Remove a folder so that a kill in the middle leaves nothing under its name."""
    aside = path.with_name(f"{DELETING}{path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    shutil.rmtree(aside)


def put_in_place(temporary: Path, final: Path) -> None:
    """Give a folder its name; one that has the name already is renamed first, then removed."""
    aside = final.with_name(f"{DELETING}{final.name}")
    if final.exists():
        shutil.rmtree(aside, ignore_errors=True)
        final.rename(aside)
    temporary.rename(final)
    sync_folder(final.parent)
    shutil.rmtree(aside, ignore_errors=True)


def clean(folder: Path) -> list[str]:
    """Remove what a killed run was writing or removing; the names. Only the folder's owner may call."""
    left = [path for mark in (WRITING, DELETING) for path in folder.glob(f"{mark}*") if path.is_dir()]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return sorted(path.name for path in left)


def set_aside(folder: Path, step: int) -> list[str]:
    """Rename the checkpoints after `step`, from which a run goes another way now; the new names."""
    names = []
    for later in (each for each in steps_saved(folder) if each > step):
        aside = folder / f"{SUPERSEDED}{place_of(folder, later).name}"
        shutil.rmtree(aside, ignore_errors=True)
        place_of(folder, later).rename(aside)
        names.append(aside.name)
    return names


def bytes_held(folder: Path) -> int:
    """What the checkpoints of a run folder take on the disk."""
    files = (path for step in steps_saved(folder) for path in place_of(folder, step).glob("*"))
    return sum(path.stat().st_size for path in files)


def write_text(path: Path, text: str) -> None:
    """Write a file and wait until it has reached the disk."""
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder have reached the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The content of data files as a hash, read again only where size, time or inode say that it may differ."""

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from launcher.data.atomic import write_text

# A file changed twice within one tick of a coarse clock keeps its time: too young a hash is not trusted.
_TOO_YOUNG_NS = 2_000_000_000


def content_of(files: Sequence[Path], notes: Path, *, verify: bool, root: Path | None = None) -> str:
    """One hash over the names and contents of files. `notes`: folder of what is known about each.

    `verify`: read every byte whatever the notes say. `root`: names count from below that folder, so that
    files that change places inside it are other data, and a folder that is moved whole is the same.
    """
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(root).as_posix() if root else file.name
        digest.update(f"{name}\0{_file_hash(file, notes, verify=verify)}\0".encode())
    return digest.hexdigest()


def _file_hash(file: Path, notes: Path, *, verify: bool) -> str:
    place = file.resolve()
    note = notes / f"{hashlib.sha256(str(place).encode()).hexdigest()[:32]}.json"
    before = _stamp(place)
    if not verify and (known := _known(note, before)):
        return known
    with place.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if _stamp(place) == before and time.time_ns() - before["mtime_ns"] > _TOO_YOUNG_NS:
        with suppress(OSError):  # not noted: the bytes are read again next time
            write_text(note, json.dumps({"path": str(place), **before, "sha256": found}))
    return found


def _stamp(file: Path) -> dict[str, int]:
    found = file.stat()
    return {
        "size": found.st_size,
        "mtime_ns": found.st_mtime_ns,
        "ctime_ns": found.st_ctime_ns,  # a time that is set back by hand does not set this one back
        "inode": found.st_ino,
    }


def _known(note: Path, stamp: dict[str, int]) -> str | None:
    """The noted hash, if the file is still the one that was hashed. A damaged note is no note."""
    try:
        noted = json.loads(note.read_text(encoding="utf-8"))
        same = all(noted[key] == value for key, value in stamp.items())
        return str(noted["sha256"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

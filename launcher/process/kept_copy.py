"""The final model as one file on another disk: network disks are slow with many small files.

Written beside its name, flushed to the disk, read back against the source, and only then renamed.
"""

import hashlib
import os
import tarfile
from pathlib import Path
from typing import IO

from launcher.errors import ExportError, Problem
from launcher.hardware.free_space import require_free

_CHUNK_BYTES = 2**22


def require_target(folder: Path) -> None:
    """Raise ExportError for a place that nothing can be copied to, before hours are trained."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    if not writable:
        raise _unusable(folder, "it may not be written to")


def _unusable(folder: Path, reason: str) -> ExportError:
    return ExportError(
        Problem(
            where=f"--copy_to {folder}",
            what=f"nothing can be copied there: {reason}",
            right="a folder of yours on another disk, on AutoDL /root/autodl-fs",
            type="--copy_to /root/autodl-fs/models",
        )
    )


def copy_final(final: Path, to: Path, name: str) -> Path:
    """`to/NAME.tar` with the folder's files, proven to hold the same bytes. Raises LauncherError."""
    size = sum(path.stat().st_size for path in final.rglob("*") if path.is_file())
    require_free(
        to,
        size,
        takes="the final model has",
        right="room for one copy",
        type=f"du -sh {to}/* ; then: tar -cf ANOTHER_DISK/{name}.tar -C {final.parent} {final.name}",
    )
    target, temporary = _free_name(to, name), to / f".writing-{name}-{os.getpid()}.tar"
    try:
        _write(final, temporary)
        _prove(final, temporary)
        temporary.replace(target)
    except (OSError, tarfile.TarError) as error:
        temporary.unlink(missing_ok=True)
        raise _unusable(to, str(error)) from error
    return target


def _free_name(to: Path, name: str) -> Path:
    """An earlier copy is another result: it stays."""
    names = [to / f"{name}.tar", *(to / f"{name}-{number}.tar" for number in range(2, 10_000))]
    return next(path for path in names if not path.exists())


def _write(final: Path, temporary: Path) -> None:
    with temporary.open("wb") as file:
        with tarfile.open(fileobj=file, mode="w") as packed:
            packed.add(final, arcname=final.name)
        file.flush()
        os.fsync(file.fileno())


def _prove(final: Path, packed: Path) -> None:
    """Every file of the folder is in the archive with the same bytes. Raises OSError otherwise."""
    with tarfile.open(packed) as held:
        for path in (each for each in sorted(final.rglob("*")) if each.is_file()):
            member = held.extractfile(f"{final.name}/{path.relative_to(final).as_posix()}")
            with path.open("rb") as source:
                if member is None or _digest(member) != _digest(source):
                    raise OSError(f"{path.name} did not arrive as it is")


def _digest(file: IO[bytes]) -> bytes:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()

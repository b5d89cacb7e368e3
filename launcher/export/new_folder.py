"""A folder that is there whole or not at all: written beside its place, and named at the end. No torch."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher.errors import Conflict, ExportError, Problem
from launcher.hardware.free_space import require_free
from launcher.train.final_model import system_error
from launcher.train.save_failure import failure_of
from launcher.units import format_bytes


def place_for(text: str, *, option: str, command: str) -> Path:
    """The whole path of a folder that is to be made. Raises Conflict where something would be written over.

    An empty folder is as good as none. `command` is what is typed in front of the option.
    """
    place = Path(text).expanduser().resolve()
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return place
    raise Conflict(
        Problem(
            where=text,
            what="this folder exists already, and has files in it" if place.is_dir() else "this is a file",
            right="a new or an empty folder: nothing is written over",
            type=f"{command} {option} ANOTHER_FOLDER",
        )
    )


@contextmanager
def new_folder(place: Path, *, needed_bytes: int, name: str, option: str) -> Iterator[Path]:
    """Yields a temporary folder to write into; it becomes `place` at the end, and goes where anything fails.

    Raises DoesNotFit where the disk has less room than `needed_bytes`, ExportError where the system refuses.
    """
    require_free(
        place,
        needed_bytes,
        takes=f"{name} needs",
        right=f"{format_bytes(needed_bytes)} on one disk",
        type=f"{option} FOLDER_ON_A_LARGER_DISK",
    )
    temporary = place.with_name(f".writing-{place.name}")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        _put(temporary, place)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if not isinstance(error, Exception) or (found := system_error(error)) is None:
            raise
        raise _not_written(place, found, needed_bytes, name, option) from None


def _put(temporary: Path, place: Path) -> None:
    """Name it. A folder that is there stays: a shell may stand in it, or a disk be mounted on it."""
    if not place.is_dir():
        temporary.rename(place)
        return
    for child in temporary.iterdir():
        child.rename(place / child.name)
    temporary.rmdir()


def _not_written(place: Path, error: OSError, needed: int, name: str, option: str) -> ExportError:
    failure = failure_of(error, name=name, folder=place.parent, needed_bytes=needed, rank=0)
    return ExportError(
        Problem(
            where=str(place),
            what=failure.what(),
            right="a folder that can be written to, with room enough; the run is untouched",
            type=f"{failure.type()}; or {option} ANOTHER_FOLDER",
        )
    )

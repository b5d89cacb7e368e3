"""Files without a name, for what is prepared and does not fit memory; gone with the process."""

import contextlib
import errno
import tempfile
from pathlib import Path
from typing import IO

from launcher.data.cache_place import VARIABLE, cache_root
from launcher.errors import DoesNotFit, Problem


class Scratch:
    """One such file, beside the cache, where there is room for data; else where the system has its own."""

    def __init__(self) -> None:
        """Empty."""
        self.folder, self._file = _opened()

    def __del__(self) -> None:
        """The room is given back; what is mapped stays readable."""
        self._file.close()

    def fileno(self) -> int:
        """The descriptor to read by."""
        return self._file.fileno()

    def write(self, data: bytes | memoryview) -> None:
        """All of it, behind what is there. Raises DoesNotFit where the disk is full."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise DoesNotFit(_full(self.folder)) from None


def _opened() -> tuple[Path, IO[bytes]]:
    root = cache_root()
    with contextlib.suppress(OSError):  # not ours to write: the system's place will do
        root.mkdir(parents=True, exist_ok=True)
        return root, tempfile.TemporaryFile(dir=root, buffering=0)
    return Path(tempfile.gettempdir()), tempfile.TemporaryFile(buffering=0)


def _full(folder: Path) -> Problem:
    return Problem(
        where=str(folder),
        what="the disk is full: rows lie there while they are prepared",
        right="room for the texts once and for their tokens twice",
        type=f"{VARIABLE}=FOLDER_ON_A_LARGER_DISK, then the same command",
    )

"""Numbers written one piece after another, and mapped from a file where they are many."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from launcher.data.scratch import Scratch

HELD_BYTES = 2**23
Numbers = npt.NDArray[Any]


class NumberWriter:
    """Takes arrays of one kind; gives back one array, read-only where it is mapped from a file."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        """Up to `HELD_BYTES` stay in memory."""
        self.dtype = np.dtype(dtype)
        self._parts = list[Numbers]()
        self._num_bytes = 0
        self._file: Scratch | None = None

    def add(self, part: Numbers) -> None:
        """One more piece, of one dimension."""
        part = np.ascontiguousarray(part, dtype=self.dtype)
        self._num_bytes += part.nbytes
        if self._file is None:
            self._parts.append(part)
            if self._num_bytes > HELD_BYTES:
                self._file, parts, self._parts = Scratch(), self._parts, []
                for each in parts:
                    self._write(each)
        else:
            self._write(part)

    def _write(self, part: Numbers) -> None:
        assert self._file is not None
        self._file.write(part.data.cast("B") if part.size else b"")

    def done(self) -> Numbers:
        """All numbers."""
        if self._file is None:
            return np.concatenate(self._parts) if self._parts else np.zeros(0, dtype=self.dtype)
        mapped = mmap.mmap(self._file.fileno(), self._num_bytes, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, dtype=self.dtype)


def forget(array: Numbers) -> None:
    """Give the memory back in which a mapped array's pages are; they are read again when looked at."""
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)

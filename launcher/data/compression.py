"""Compressed files unpacked as they are read: gzip by Python, zstd by Python 3.14 or its package."""

import importlib
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from launcher.errors import DataError, Problem

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Texts shrink to a third or a tenth. What grows beyond both is made to fill the memory.
MOST_TIMES, ALWAYS_ALLOWED_BYTES = 100, 2**30
_CHUNK_BYTES, _PIECE_BYTES = 2**14, 2**20


def unpacked(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The bytes inside a file named .gz or .zst, piece by piece; others as they are.

    Raises DataError for a damaged one, one of another kind than its name says, and one that unfolds without
    end.
    """
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        yield from iter(lambda: file.read(_PIECE_BYTES), b"")
        return
    start = file.read(len(kind.begins))
    if start != kind.begins:
        raise DataError(_wrong_name(path, kind.name))
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    yield from _counted(_frames(file, kind, path), packed, path)


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """A compression. `start` gives what unpacks one frame, and the errors that it raises."""

    name: str
    begins: bytes
    start: Callable[[Path], tuple[Callable[[], Any], tuple[type[Exception], ...]]]


def _frames(file: BinaryIO, kind: _Kind, path: Path) -> Iterator[bytes]:
    """All frames, one after another; a file may hold several, and may be cut inside the last."""
    make, raised = kind.start(path)
    errors: tuple[type[Exception], ...] = (*raised, EOFError)
    try:
        rest = file.read(_CHUNK_BYTES)
        while rest.strip(b"\0"):  # gzip files may be filled up with zeros
            frame = make()
            while not frame.eof:
                if not rest:
                    raise EOFError("it ends inside a frame")
                piece = frame.decompress(rest)
                if piece:
                    yield piece
                rest = frame.unused_data if frame.eof else file.read(_CHUNK_BYTES)
            rest = rest or file.read(_CHUNK_BYTES)
    except errors as error:
        raise DataError(_broken(path, kind.name, error)) from None


def _counted(pieces: Iterator[bytes], packed: int, path: Path) -> Iterator[bytes]:
    total = 0
    most = max(ALWAYS_ALLOWED_BYTES, MOST_TIMES * packed)
    for piece in pieces:
        total += len(piece)
        if total > most:
            raise DataError(_bomb(path, packed, most))
        yield piece


def _gzip(path: Path) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    return lambda: zlib.decompressobj(16 + zlib.MAX_WBITS), (zlib.error,)


def _zstd(path: Path) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Of Python 3.14, or of the package."""
    try:
        module: Any = importlib.import_module("compression.zstd")
        return module.ZstdDecompressor, (module.ZstdError,)
    except ModuleNotFoundError:
        pass
    try:
        package: Any = importlib.import_module("zstandard")
    except ModuleNotFoundError:
        raise DataError(
            Problem(
                where=str(path),
                what="this file is zstd-compressed, and nothing here can unpack it",
                right="the package zstandard, or Python 3.14",
                type=f"pip install zstandard    (or: zstd -d {path})",
            )
        ) from None
    return lambda: package.ZstdDecompressor().decompressobj(), (package.ZstdError,)


_KINDS = {
    ".gz": _Kind(name="gzip", begins=GZIP, start=_gzip),
    ".zst": _Kind(name="zstd", begins=ZSTD, start=_zstd),
}


def _bomb(path: Path, packed: int, most: int) -> Problem:
    return Problem(
        where=str(path),
        what=f"{packed:,} packed bytes unfold to more than {most:,}: no texts are packed so well",
        right="a file of data; unpack it by hand where it is one all the same",
        type=f"zcat {path} | head   (shows how it begins)",
    )


def _wrong_name(path: Path, kind: str) -> Problem:
    return Problem(
        where=str(path),
        what=f"the name ends in {path.suffix}, but this is no {kind} file",
        right=f"a {kind} file, or a name without {path.suffix}",
        type=f"mv {path} {path.with_suffix('')}",
    )


def _broken(path: Path, kind: str, error: Exception) -> Problem:
    return Problem(
        where=str(path),
        what=f"the {kind} file is damaged or was cut short: {error}",
        right="the whole file",
        type=f"fetch {path.name} again",
    )

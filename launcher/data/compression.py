"""Compressed files unpacked in memory: gzip by Python, zstd by Python 3.14 or the zstandard package."""

import gzip
import importlib
import io
import zlib
from pathlib import Path
from typing import Any

from launcher.errors import DataError, Problem

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Texts shrink to a third or a tenth. What grows beyond both is made to fill the memory.
MOST_TIMES, ALWAYS_ALLOWED_BYTES = 100, 2**30
_CHUNK_BYTES = 2**14


def unpack(data: bytes, path: Path) -> bytes:
    """The bytes inside a file named .gz or .zst; others as they are. Raises DataError for a damaged one."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return _gunzip(data, path)
    return _unzstd(data, path) if suffix == ".zst" else data


def _gunzip(data: bytes, path: Path) -> bytes:
    if not data.startswith(GZIP):
        raise DataError(_wrong_name(path, "gzip"))
    most = _most_bytes(data)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            found = file.read(most + 1)
        if len(found) > most:
            raise DataError(_bomb(path, len(data), most))
        return found
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(_broken(path, "gzip", error)) from None


def _unzstd(data: bytes, path: Path) -> bytes:
    if not data.startswith(ZSTD):
        raise DataError(_wrong_name(path, "zstd"))
    try:
        module: Any = importlib.import_module("compression.zstd")
        return bytes(module.decompress(data))
    except ModuleNotFoundError:
        return _unzstd_by_package(data, path)
    except Exception as error:  # its error's class is known only where the module is
        raise DataError(_broken(path, "zstd", error)) from None


def _unzstd_by_package(data: bytes, path: Path) -> bytes:
    try:
        zstandard: Any = importlib.import_module("zstandard")
    except ModuleNotFoundError:
        raise DataError(
            Problem(
                where=str(path),
                what="this file is zstd-compressed, and nothing here can unpack it",
                right="the package zstandard, or Python 3.14",
                type=f"pip install zstandard    (or: zstd -d {path})",
            )
        ) from None
    try:
        return _frames(zstandard, data, path)
    except (zstandard.ZstdError, EOFError) as error:
        raise DataError(_broken(path, "zstd", error)) from None


def _frames(zstandard: Any, data: bytes, path: Path) -> bytes:
    """All frames, one after another; a file may hold several, and may be cut inside the last."""
    parts, start, total = [], 0, 0
    while start < len(data):
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        while not unpacker.eof:
            if start >= len(data):
                raise EOFError("it ends inside a frame")
            chunk = data[start : start + _CHUNK_BYTES]
            parts.append(unpacker.decompress(chunk))
            start, total = start + len(chunk), total + len(parts[-1])
            if total > _most_bytes(data):
                raise DataError(_bomb(path, len(data), _most_bytes(data)))
        start -= len(unpacker.unused_data)
    return b"".join(parts)


def _most_bytes(packed: bytes) -> int:
    return max(ALWAYS_ALLOWED_BYTES, MOST_TIMES * len(packed))


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

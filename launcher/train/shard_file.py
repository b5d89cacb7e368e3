"""One safetensors file of a checkpoint, written and read back in pieces.

Own, because the library's writer keeps the interpreter's lock while gigabytes go out, and training would
wait for it. The format: eight bytes with the header's length, the header in JSON (padded to eight bytes),
then the tensors one after another (safetensors' README).
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_DTYPES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float64: "F64",
}
_CHUNK_BYTES = 2**24


class NotAsWritten(OSError):
    """A file whose content on the disk is not what was written into it."""


def write_shard(path: Path, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Write contiguous host tensors; size and hash, after the disk has given the bytes back unchanged.

    Raises OSError: no space, no permission, or a disk that does not hold what it was given.
    """
    digest = hashlib.sha256()
    # Wide types first, so that every tensor lies where its type may lie.
    ordered = dict(sorted(tensors.items(), key=lambda item: -item[1].element_size()))
    with path.open("wb") as file:
        for piece in _pieces(ordered):
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    written = {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}
    if _from_disk(path) != written:
        raise NotAsWritten(5, "the disk gives back another content than was written", str(path))
    return written


def _pieces(tensors: Mapping[str, Tensor]) -> Iterator[Any]:
    yield _header(tensors)
    for tensor in tensors.values():
        data: Any = tensor.reshape(-1).view(torch.uint8).numpy()
        for start in range(0, len(data), _CHUNK_BYTES):
            yield data[start : start + _CHUNK_BYTES]


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    entries: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        shape = list(tensor.shape)
        entries[name] = {"dtype": _DTYPES[tensor.dtype], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _from_disk(path: Path) -> dict[str, Any]:
    """Size and hash as the disk has them: what the kernel still holds in memory is dropped first."""
    with path.open("rb") as file:
        if hasattr(os, "posix_fadvise"):  # not on macOS
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}

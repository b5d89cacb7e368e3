"""Whether saved weights are whole, by their headers alone: no torch, and no tensor is read."""

import json
from pathlib import Path

from launcher.errors import ExportError, Problem

_LENGTH_BYTES = 8
_MOST_HEADER_BYTES = 100_000_000  # safetensors' own limit


def require_whole(folder: Path) -> None:
    """Raises ExportError for a .safetensors file that is cut off, or is none (a Git LFS pointer)."""
    for path in sorted(folder.glob("*.safetensors")):
        if fault := fault_of(path):
            raise ExportError(
                Problem(
                    where=str(path),
                    what=f"this weights file is damaged: {fault}",
                    right="the file as it was written, whole",
                    type="copy the folder again; or the run's command with --resume, which exports it again",
                )
            )


def fault_of(path: Path) -> str:
    """What is wrong with the file; empty where its header and its size agree.

    Format: 8 bytes of the header's length, little-endian; a JSON of tensors with their offsets; the bytes.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if size < _LENGTH_BYTES or length > min(_MOST_HEADER_BYTES, size - _LENGTH_BYTES):
            return f"{size:,} bytes are no safetensors file (a Git LFS pointer, or a copy that stopped)"
        try:
            header = json.loads(file.read(length))
            ends = [each["data_offsets"][1] for name, each in header.items() if name != "__metadata__"]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "its header cannot be read"
    wanted = _LENGTH_BYTES + length + max(ends, default=0)
    return "" if size == wanted else f"{size:,} bytes, {wanted:,} are stated in its header"

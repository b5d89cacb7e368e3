"""Files on their way into a cache: room for them first, their hash once they are there."""

from pathlib import Path
from typing import Protocol

from launcher.hardware.free_space import require_free
from launcher.units import format_bytes

_CHUNK_BYTES = 2**22


class Digest(Protocol):
    """A hash that has been begun."""

    def update(self, data: bytes, /) -> None:
        """With more bytes."""

    def hexdigest(self) -> str:
        """Of all so far."""


def require_room(folder: Path, num_bytes: int, *, cache: str, variable: str) -> None:
    """Raise DoesNotFit where a cache's disk has less free; `variable` of the environment moves it."""
    require_free(
        folder,
        num_bytes,
        takes="the model still needs",
        right=f"{format_bytes(num_bytes)} free where {cache} is",
        type=f"export {variable}=FOLDER_ON_A_LARGER_DISK, then the same command",
    )


def digest_of(path: Path, begun: Digest) -> str:
    """The hash of a file's bytes behind what `begun` has seen."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            begun.update(chunk)
    return begun.hexdigest()

"""Room on a disk: how much there is, and a refusal where it is not enough."""

import shutil
from pathlib import Path

from launcher.errors import DoesNotFit, Problem
from launcher.units import format_bytes


def free_bytes(place: Path) -> int:
    """Free on the disk of a folder or file that may not be there yet."""
    whole = place.absolute()
    return shutil.disk_usage(next(each for each in (whole, *whole.parents) if each.exists())).free


def require_free(
    place: Path, needed_bytes: int, *, takes: str, right: str, type: str, where: str = ""
) -> None:
    """Raise DoesNotFit where the disk has less free.

    `takes` is what is wanted with its verb ("the model needs"); `where` is told instead of the place.
    """
    if needed_bytes <= (free := free_bytes(place)):
        return
    raise DoesNotFit(
        Problem(
            where=where or str(place),
            what=f"{takes} {format_bytes(needed_bytes)}, {format_bytes(free)} are free",
            right=right,
            type=type,
        )
    )

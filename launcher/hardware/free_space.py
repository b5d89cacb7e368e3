"""Room on a disk."""

import shutil
from pathlib import Path


def free_bytes(place: Path) -> int:
    """Free on the disk of a folder or file that may not be there yet."""
    whole = place.absolute()
    return shutil.disk_usage(next(each for each in (whole, *whole.parents) if each.exists())).free

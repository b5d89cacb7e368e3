"""Files that are there whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write beside the place, then rename. Raises OSError; leaves nothing behind then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise

"""Where a configuration file is that a person named: beside them, in the clone, or in the package."""

from pathlib import Path

import launcher

PACKAGE = Path(launcher.__file__).resolve().parent


def find_config(name: str, cwd: Path | None = None) -> Path:
    """The absolute path: as seen from the working directory, then from the project's root.

    An installed wheel carries `ds_configs/` as `launcher/_ds_configs/`. A file that is nowhere
    comes back as seen from the working directory, for the reader to refuse.
    """
    first = (cwd or Path.cwd()) / name
    relative = Path(name)
    shipped = PACKAGE / f"_{relative.parts[0]}" / Path(*relative.parts[1:]) if relative.parts else first
    for path in (first, PACKAGE.parent / name, shipped):
        if path.is_file():
            return path.absolute()
    return first.absolute()

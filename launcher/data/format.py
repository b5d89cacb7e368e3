"""What a file format is, and where the formats are registered."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from launcher.data.reading import Reading
from launcher.data.table import Table
from launcher.data.text import Text
from launcher.registry import Registry

COMPRESSIONS = (".gz", ".zst")


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: the suffixes that it is known by, and how it becomes rows.

    A text format has `read`, which gets the decoded text; a binary one `load`, which gets the file. Neither
    holds more than a block of rows in memory, where the format allows that.
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    read: Callable[[Text, Path, Reading], Table] | None = None
    load: Callable[[Path, Reading], Table] | None = None


FORMATS: Registry[Format] = Registry("data format", "launcher.data.formats")


def endings() -> list[str]:
    """Every ending that a data file may have, without those of compression."""
    return [suffix for known in FORMATS for suffix in known.suffixes]


def ending(path: Path) -> str:
    """The ending that tells a file's format: `.csv` of train.csv and of train.csv.gz, in lower case."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() if suffix in COMPRESSIONS else suffix


def format_of(path: Path) -> Format | None:
    """The format that a file's name says it has."""
    return next((known for known in FORMATS if ending(path) in known.suffixes), None)

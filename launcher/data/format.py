"""What a file format is, and where the formats are registered."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from launcher.data.table import Table
from launcher.registry import Registry


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: the suffixes that it is known by, and how its text becomes rows."""

    name: str
    summary: str
    suffixes: tuple[str, ...]
    read: Callable[[str, Path], Table]


FORMATS: Registry[Format] = Registry("data format", "launcher.data.formats")

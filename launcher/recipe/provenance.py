"""Where a value came from: every leaf of a recipe carries its origin from the file to the message."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_LONGEST = 200
Kind = Literal["default", "recipe", "parent", "command line", "starter", "derived"]


def shown(path: Path | str) -> str:
    """The path as a person would type it: relative where it lies below the working directory."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Who gave a value: the kind, for files the place, and why where the launcher chose it."""

    kind: Kind
    file: str = ""
    line: int = 0
    note: str = ""

    def place(self) -> str:
        """What stands in front of a message: `file:line`, or the kind."""
        return f"{shown(self.file)}:{self.line}" if self.file else self.kind

    def __str__(self) -> str:
        """The whole story in one line."""
        place = f"{self.kind}  {self.place()}" if self.file else self.kind
        return f"{place}  ({self.note})" if self.note else place


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One given value: its dotted path in parts, the value, the text as typed, and its origin."""

    path: tuple[str, ...]
    value: Any
    raw: Any
    origin: Origin

    @property
    def key(self) -> str:
        """The dotted key."""
        return ".".join(self.path)

    @property
    def typed(self) -> str:
        """The value as the person wrote it, for messages."""
        return as_typed(self.raw)


def as_typed(raw: Any) -> str:
    """A raw value in one line, as in a recipe; the middle of a long one left out."""
    if isinstance(raw, list):
        text = f"[{', '.join(map(as_typed, raw))}]"
    elif isinstance(raw, dict):
        text = f"{{{', '.join(f'{key}: {as_typed(value)}' for key, value in raw.items())}}}"
    else:
        text = str(raw)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


DEFAULT = Origin(kind="default")

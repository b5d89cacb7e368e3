"""What `train_file` names: one file, many, a saved `datasets` folder, or a data set of the hub."""

import re
from itertools import takewhile
from pathlib import Path
from typing import Literal

from launcher.data.format import FORMATS, format_of

Kind = Literal["hub", "saved", "many", "file"]
_HUB = re.compile(r"hf:/{1,2}(?P<name>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w./-]+))?")
_PLAIN = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
# Written by `datasets` into a folder that it saved.
_SAVED = ("dataset_info.json", "dataset_dict.json")


def kind_of(path: Path) -> Kind:
    """What a path is. OWNER/NAME is the hub's where there is no such file and no data file's ending."""
    text = str(path)
    if text.startswith("hf:/"):
        return "hub"
    if path.is_dir():
        return "saved" if any((path / name).is_file() for name in _SAVED) else "many"
    if path.exists():
        return "file"
    if is_pattern(text):
        return "many"
    return "hub" if _PLAIN.fullmatch(text) and not _looks_like_a_file(path) else "file"


def _looks_like_a_file(path: Path) -> bool:
    return format_of(path) is not None or path.parent.is_dir() or path.suffix.lower() in (".gz", ".zst")


def is_pattern(text: str) -> bool:
    """Whether a name holds the signs of a pattern."""
    return any(sign in text for sign in "*?[")


def hub_name(path: Path) -> tuple[str, str | None]:
    """(OWNER/NAME, revision) of hf://OWNER/NAME@REVISION or OWNER/NAME."""
    found = _HUB.fullmatch(str(path))
    return (found["name"], found["revision"]) if found else (str(path), None)


def files_in(path: Path) -> list[Path]:
    """The data files of a folder (also below it) or a pattern, by name; hidden ones are none.

    A folder's files are those whose endings are known; where a pattern is given, all that it finds.
    """
    if path.is_dir():
        inside = (each for each in path.rglob("*") if each.is_file() and format_of(each))
        return sorted(each for each in inside if not _is_hidden(each.relative_to(path)))
    start = Path(path.anchor) if path.is_absolute() else Path()
    pattern = str(path.relative_to(path.anchor)) if path.is_absolute() else str(path)
    try:
        return sorted(each for each in start.glob(pattern) if each.is_file())
    except ValueError:  # "**" within a name
        return []


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def source_files(path: Path) -> list[Path]:
    """Every file that reading this place opens: what a key of its content must hash. None for the hub."""
    kind = kind_of(path)
    if kind == "many":
        return files_in(path)
    if kind == "saved":
        return sorted(each for each in path.rglob("*") if each.is_file())
    return [path] if kind == "file" and path.is_file() else []


def source_root(path: Path) -> Path:
    """The folder below which the names of these files count: moved as a whole they are the same data."""
    kind = kind_of(path)
    if kind == "many" and not path.is_dir():
        fixed = takewhile(lambda part: not is_pattern(part), path.parts)
        return Path(*fixed)
    return path if kind in ("many", "saved") else path.parent


def known_endings() -> str:
    """The endings of data files, for messages."""
    return ", ".join(suffix for known in FORMATS for suffix in known.suffixes)

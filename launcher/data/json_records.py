"""Records as JSON text: read strictly, and what is said of those that are none."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launcher.data.findings import excerpt
from launcher.errors import Problem
from launcher.twice import key_twice

RIGHT = "an array of objects, or one object a line"
BLANK = " \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*")
Keep = Callable[[Any, int, int, int], None]  # record, line, number, characters


class NotJson(ValueError):
    """What Python's json reads although JSON has no such thing, or what is no record."""


def _refuse_constant(word: str) -> Any:
    raise NotJson(f"{word} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, each of whose keys stands there once: of two values one would be lost unseen."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotJson(f"the key '{key_twice(pairs)}' stands there twice")
    return found


DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_once)


def skip(text: str, place: int) -> int:
    """Behind the white space that begins at a place."""
    return _SPACE.match(text, place).end()  # type: ignore[union-attr]


def unreadable(
    error: ValueError | RecursionError, path: Path, line: int, number: int, content: str, *, start: int = 0
) -> Problem:
    """Of a record that is not JSON. `content` begins at `start` of the text that the decoder was given."""
    what = str(error)
    if isinstance(error, json.JSONDecodeError):
        line += error.doc.count("\n", start, error.pos)
        said = error.msg.removesuffix(" at").removesuffix(" starting")
        what = f"{said} at its character {error.pos - start + 1:,}"
    return Problem(
        where=f"{path}:{line}",
        what=f"record {number:,} is not JSON: {what}; it begins: {excerpt(content)}",
        right=RIGHT,
        type="mend or remove that record",
    )

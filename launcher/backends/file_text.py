"""A configuration file's text, and a JSON in it; the slips of hand that keep it from being one are named."""

import json
import re
from pathlib import Path
from typing import Any

from launcher.backends.file_kind import meant_for, why_no_json
from launcher.errors import BadValue, Problem, RecipeError
from launcher.twice import key_twice

MAX_FILE_BYTES = 2**20


def read_text(path: Path, wanted: str) -> str:
    """The file's text; `wanted` says what belongs there. Raises BadValue for what is no such text."""
    if not path.is_file():
        raise BadValue(
            Problem(where=str(path), what="there is no such file", right=wanted, type=f"ls {path.parent}")
        )
    if path.stat().st_size > MAX_FILE_BYTES:
        raise unreadable(str(path), f"has {path.stat().st_size:,} bytes", f"{wanted}: some dozen lines")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(str(path), "cannot be read", str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise unreadable(str(path), "is not UTF-8 text", str(error.reason)) from error


def parse_json(path: Path, text: str) -> dict[str, Any]:
    """The text as a JSON object. Raises BadValue that names the slip."""
    try:
        config = json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise _no_json(path, text, error) from error
    except _TwiceError as error:
        raise unreadable(str(path), f"has the key '{error}' twice", "each key once") from error
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, brackets without end
        raise unreadable(str(path), "is not JSON", first_line(error)) from error
    if not isinstance(config, dict):
        raise unreadable(str(path), "is not a JSON object", '{"zero_optimization": ...} is needed')
    return config


def _no_json(path: Path, text: str, error: json.JSONDecodeError) -> RecipeError:
    """Why it is none: another tool's YAML, or the slip that stands where the parser stopped."""
    if path.suffix in (".yaml", ".yml") and not text.lstrip().startswith("{"):
        kind = "recipe" if re.search(r"^(extends|task|training):", text, re.MULTILINE) else "accelerate"
        if other := meant_for(kind, path, "deepspeed"):
            return BadValue(other)
    what, right = why_no_json(text, error.pos)
    if not what:
        return unreadable(f"{path}:{error.lineno}", "is not JSON", error.msg)
    return unreadable(f"{path}:{error.lineno}", f"is not JSON: {what}", right)


def first_line(error: BaseException) -> str:
    """The parser's words; of brackets that nest too deeply there are none of use."""
    if isinstance(error, RecursionError):
        return "brackets are nested too deeply"
    return str(error).partition("\n")[0] or type(error).__name__


class _TwiceError(Exception):
    """A key that stands twice in one JSON object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := key_twice(pairs)) is not None:
        raise _TwiceError(twice)
    return dict(pairs)


def unreadable(where: str, what: str, detail: str) -> RecipeError:
    """A file that cannot be taken: why, and what would be right."""
    return BadValue(Problem(where=where, what=f"the file {what}", right=detail, type="mend the file"))

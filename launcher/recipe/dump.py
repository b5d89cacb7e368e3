"""A resolved recipe as YAML text that loads back to the same recipe."""

import json
import re
from typing import Any

from launcher.recipe.scalars import read_scalar
from launcher.recipe.schema import Recipe

_BARE = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*(?: [A-Za-z0-9_./+-]+)*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def to_yaml(recipe: Recipe) -> str:
    """Every section and every key, defaults included."""
    lines: list[str] = []
    for name, value in recipe.model_dump(mode="json").items():
        if isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {key}: {written(inner)}" for key, inner in value.items()]
        else:
            lines.append(f"{name}: {written(value)}")
    return "\n".join(lines) + "\n"


def written(value: Any) -> str:
    """One value in one line: bare where that reads back as the same text, in quotes otherwise."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(str(key))}: {written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str) and _BARE.fullmatch(value) and read_scalar(value) == value:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)

"""One YAML 1.2 scalar from its text: `1e-5` is a number, `no` and `on` are text."""

import re
from typing import Any

_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*|0o[0-7_]+|0x[0-9a-fA-F_]+")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
MAX_DIGITS = 300
_NULL = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def read_scalar(text: str) -> Any:
    """A plain scalar's value: null, boolean, whole number, number, or the text itself."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if len(text) > MAX_DIGITS:
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(text):
        return _whole(digits)
    if _FLOAT.fullmatch(text):
        return float(re.sub(r"\.(?=inf$|nan$)", "", digits.lower()))
    return text


def _whole(digits: str) -> int:
    """Decimal, `0o17` or `0x1f`. Leading zeros are decimal."""
    base = {"0o": 8, "0x": 16}.get(digits[:2], 10)
    return int(digits[2:] if base != 10 else digits, base)

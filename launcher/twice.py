"""Keys that stand twice in one JSON object: Python's json would keep the last, and lose the first unseen."""

from collections.abc import Sequence
from typing import Any


def key_twice(pairs: Sequence[tuple[str, Any]]) -> str | None:
    """Of an object's pairs the first key that comes again; None where all keys differ."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) == len(keys):
        return None
    return next(key for key in keys if keys.count(key) > 1)

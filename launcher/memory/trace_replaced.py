"""Puts something else in the place of attributes for a while: what a trace answers instead of a machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ABSENT: Any = object()


@contextmanager
def replaced(place: Any, **values: Any) -> Iterator[None]:
    """The attributes of `place` are `values` inside, and what they were afterwards."""
    before = {name: vars(place).get(name, _ABSENT) for name in values}
    for name, value in values.items():
        setattr(place, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _ABSENT:
                delattr(place, name)
            else:
                setattr(place, name, value)

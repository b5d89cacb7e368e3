"""One line of a dialect's table: another tool's key, ours, how the value is read, what is to be said.

The tables are data: `launcher import` applies them, and the pages docs/from-*.md are written from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Read = Callable[[Any], Any]
Kind = Literal["carried", "together", "needless", "left"]


class Nothing(Exception):  # noqa: N818 (not an error: the value is off, empty or the tool's default)
    """Raised by a reader for a value that says nothing; its text may say why."""


@dataclass(frozen=True)
class Several:
    """A value of theirs that is several of ours, by dotted key."""

    values: Mapping[str, Any] = field(hash=False)


def as_it_is(value: Any) -> Any:
    """The value, unless it is one of the ways to say nothing."""
    if value is None or value == "" or value == "auto":
        raise Nothing
    return value


@dataclass(frozen=True, kw_only=True)
class Row:
    """One key. `names` are its spellings, dotted inside blocks, today's first.

    `ours` is the recipe's key, or several with commas; `read` turns the value into ours, raises `Nothing`
    for one that says nothing, or ValueError with the reason for one that cannot be carried over.
    `note` is said in the manual, and for a key that is left it is the reason; `nearest` what comes nearest.
    """

    names: tuple[str, ...]
    kind: Kind
    ours: str = ""
    read: Read = as_it_is
    note: str = ""
    nearest: str = ""


def same(names: str, ours: str, note: str = "", *, nearest: str = "") -> Row:
    """The same value under our name."""
    return Row(names=tuple(names.split()), kind="carried", ours=ours, note=note, nearest=nearest)


def read(names: str, ours: str, how: Read, note: str = "", *, nearest: str = "") -> Row:
    """A value that has to be read."""
    return Row(names=tuple(names.split()), kind="carried", ours=ours, read=how, note=note, nearest=nearest)


def together(names: str, ours: str, note: str = "") -> Row:
    """A key whose value counts with others: the dialect's `settle` takes it."""
    return Row(names=tuple(names.split()), kind="together", ours=ours, note=note)


def needless(names: str, note: str) -> Row:
    """Keys that need not be said here, whatever the value."""
    return Row(names=tuple(names.split()), kind="needless", note=note)


def left(names: str, why: str, nearest: str = "", *, harmless: tuple[Any, ...] = ()) -> Row:
    """Keys without a counterpart. Values that are off, empty or among `harmless` lose nothing."""
    return Row(names=tuple(names.split()), kind="left", note=why, nearest=nearest, read=_unless(harmless))


def _unless(harmless: tuple[Any, ...]) -> Read:
    def how(value: Any) -> Any:
        if value in (None, False, 0, "", "no", "none", "None", [], {}, (), "auto") or value in harmless:
            raise Nothing
        return value

    return how

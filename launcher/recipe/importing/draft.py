"""A recipe on the way from another tool's file: what is carried over so far, and what is not, and why."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from launcher.recipe.importing.dialect import Dialect
from launcher.recipe.importing.source import Source
from launcher.recipe.importing.table import Nothing, Row, Several
from launcher.redact import redacted_data
from launcher.registry import nearest

MISSING = object()
_UNFILLED = re.compile(r"\$\{?[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class Carried:
    """A key of theirs, and what it became here."""

    place: str
    theirs: str
    value: Any = field(hash=False)
    ours: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, kw_only=True)
class Left:
    """A key of theirs that could not be carried over: why, and what comes nearest."""

    place: str
    theirs: str
    value: Any = field(hash=False)
    why: str
    nearest: str = ""


@dataclass(kw_only=True)
class Draft:
    """One file's keys as they are taken one by one; at the end none is left over in silence."""

    dialect: Dialect
    source: Source
    num_processes: int | None = None
    given: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    carried: list[Carried] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    to_say: list[str] = field(default_factory=list)
    typed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Lay the file's blocks flat, tokens and passwords taken out: nothing of them is shown or written."""
        self.given = dict(flat(redacted_data(self.source.values), self.dialect.blocks))

    def find(self, names: str) -> tuple[str, Any]:
        """The first of the spellings that the file has, and its value; MISSING where it has none."""
        for name in names.split():
            for key in self.given:
                if key.replace("-", "_").lower() == name.lower():
                    return key, self.given[key]
        return names.split()[0], MISSING

    def peek(self, names: str, default: Any = None) -> Any:
        """The value, left where it is."""
        _, value = self.find(names)
        return default if value is MISSING else value

    def take(self, names: str, default: Any = None) -> Any:
        """The value, which then counts as seen: whoever takes it says what became of it."""
        key, value = self.find(names)
        if value is MISSING:
            return default
        del self.given[key]
        return value

    def has(self, names: str) -> bool:
        """Whether the file says it, and not null."""
        return self.find(names)[1] not in (MISSING, None)

    def put(self, theirs: str, value: Any, ours: Mapping[str, Any]) -> None:
        """Carry over. What another key has said already, and differently, is left and told.

        So is a path with a variable that only the person's shell can fill in.
        """
        if isinstance(value, str) and _UNFILLED.search(value):
            self.leave(theirs, value, "a variable that the file does not set", next(iter(ours), ""))
            return
        differing = [key for key in ours if key in self.values and self.values[key] != ours[key]]
        if differing:
            key = differing[0]
            self.leave(theirs, value, f"{key} is {self.values[key]} already, by another key", key)
            return
        self.values |= ours
        self.carried.append(Carried(place=self.source.place(theirs), theirs=theirs, value=value, ours=ours))

    def say(self, ours: str, value: Any, note: str) -> None:
        """A value that the file does not say and its tool would use: written out, with a note."""
        if ours not in self.values:
            self.values[ours] = value
            self.notes.append(f"{ours}: {value}: {note}")

    def leave(self, theirs: str, value: Any, why: str, near: str = "") -> None:
        """Tell that a key cannot be carried over."""
        self.left.append(
            Left(place=self.source.place(theirs), theirs=theirs, value=value, why=why, nearest=near)
        )

    def apply_rows(self) -> None:
        """Every remaining key by its row, in the table's order; then what no row knows."""
        for row in self.dialect.rows:
            for name in row.names:
                key, value = self.find(name)
                if value is not MISSING:
                    del self.given[key]
                    self._apply(row, key, value)
        for key, value in [*self.given.items()]:
            del self.given[key]
            self._unknown(key, value)

    def _apply(self, row: Row, key: str, value: Any) -> None:
        if row.kind == "needless":
            self.needless.append(key)
            return
        try:
            found = row.read(value)
        except Nothing:
            self.quiet.append(key)
        except (ValueError, TypeError) as error:
            self.leave(key, value, f"{row.ours.partition(',')[0]}: {error}", row.nearest)
        else:
            self._take_over(row, key, value, found)

    def _take_over(self, row: Row, key: str, value: Any, found: Any) -> None:
        if row.kind == "left":
            self.leave(key, value, row.note, row.nearest)
        elif isinstance(found, Several):
            self.put(key, value, found.values)
        else:
            self.put(key, value, {row.ours: found})

    def _unknown(self, key: str, value: Any) -> None:
        known = [name for row in self.dialect.rows for name in row.names]
        close = nearest(key.rsplit(".", 1)[-1], known)
        why = f"no key of {self.dialect.title} that is known here"
        self.leave(key, value, why, f"did you mean {close}?" if close else "")

    def told(self) -> set[str]:
        """Every key of theirs that something was said about."""
        told: list[Carried | Left] = [*self.carried, *self.left]
        together = [part for each in told for part in each.theirs.split(" + ")]
        return {*together, *self.quiet, *self.needless}

    def account(self) -> None:
        """Keys that were taken for what they say with others are told too."""
        told = self.told()
        for key, value in flat(redacted_data(self.source.values), self.dialect.blocks):
            if any(each == key or each.startswith(f"{key}.") for each in told):
                continue
            if value in (None, "none", {}, [], ""):
                self.quiet.append(key)
            else:
                place = self.source.place(key)
                self.carried.append(Carried(place=place, theirs=key, value=value, ours={}))

    def absorb(self, other: "Draft") -> None:
        """What a file that this one names says besides; this one has the last word."""
        for each in other.carried:
            differing = {
                key: value for key, value in each.ours.items() if self.values.get(key, value) != value
            }
            if differing:
                key = next(iter(differing))
                why = f"{key} is {self.values[key]} already, by {self.source.name}"
                other.left.append(Left(place=each.place, theirs=each.theirs, value=each.value, why=why))
            else:
                self.values |= each.ours
                self.carried.append(each)
        self.left += other.left
        self.quiet += [f"{other.source.name}: {key}" for key in other.quiet]
        self.needless += [f"{other.source.name}: {key}" for key in other.needless]
        self.notes += other.notes
        self.num_processes = self.num_processes or other.num_processes


def flat(values: Mapping[str, Any], blocks: frozenset[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values with dotted names inside `blocks`."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name in blocks:
            yield from flat(value, blocks, f"{name}.")
        else:
            yield name, value

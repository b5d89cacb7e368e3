"""Labels to class ids, checked on the host: an id outside the classes kills a GPU's context later."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from launcher.data.label_words import AT_ONCE, Seen, words_of
from launcher.data.number_file import NumberWriter
from launcher.data.ragged import Int64
from launcher.data.table import Table
from launcher.errors import DataError, Problem
from launcher.registry import nearest

_WHOLE = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?|[-+]?(nan|inf(inity)?)", re.IGNORECASE)
# Numbers that stand for "no label" in many data sets; taken as such where they are far from the others.
_ENOUGH = 20  # rows, each with a label of its own: no classes
_MARKERS = (-100, -999, 99, 255, 999, 9999)


@dataclass(frozen=True, kw_only=True)
class LabelMap:
    """Label names in the order of their ids.

    `written`: how a file writes them. `names` as they are; `numbers`, whole numbers whose text is the
    name; `ids`, the class ids themselves.
    """

    names: tuple[str, ...]
    written: Literal["names", "numbers", "ids"]

    def ids(self, table: Table, column: str, rows: Sequence[int]) -> Int64:
        """Class ids of those rows. Raises DataError naming the first line of every wrong label."""
        words = words_of(table, column, rows)
        known = {name: number for number, name in enumerate(self.names)}
        if self.written == "ids":
            known = {str(number): number for number in range(len(self.names))}
        spelt = words.words if self.written == "names" else tuple(map(_as_number, words.words))
        wrong = words.seen(spelt, known)
        if wrong:
            raise DataError([self._wrong(table, column, word, *found) for word, found in wrong.items()][:20])
        numbers = np.fromiter((known[word] for word in spelt), dtype=np.int64, count=len(spelt))
        writer = NumberWriter(np.int64)
        for start in range(0, len(words.codes), AT_ONCE):
            writer.add(numbers[words.codes[start : start + AT_ONCE]])
        return writer.done()

    def _wrong(self, table: Table, column: str, word: str, row: int, count: int) -> Problem:
        first = f"first at {table.path.name}:{table.lines[row]}, {count:,} rows"
        listed = ", ".join(self.names[:20])
        what, right = f"label '{word}' is not a class of the training rows ({first})", f"one of: {listed}"
        typed = f"mend the label, or data.labels=[{listed}, {word}]"
        if self.written == "ids":
            top = len(self.names) - 1
            what, right = f"{word} is outside 0..{top} ({first})", f"ids 0..{top} for the classes {listed}"
            typed = (
                "count from 0 in the file" if word == str(top + 1) else "mend the label, or more data.labels"
            )
            what += "; the ids look as if counted from 1" if word == str(top + 1) else ""
        elif close := nearest(word, [name.lower() for name in self.names]):
            right += f" (nearest: {close})"
        return Problem(where=f"{table.where(row)}  {column}", what=what, right=right, type=typed)


def _as_number(word: str) -> str:
    return str(int(word)) if _WHOLE.fullmatch(word) else word


def learn_labels(
    table: Table, column: str, rows: Sequence[int], names: tuple[str, ...] | None
) -> tuple[LabelMap, tuple[str, ...]]:
    """The classes: those that the recipe names, or those of the training rows; and what to say of them."""
    distinct = words_of(table, column, rows).seen()
    if names is not None:
        return _named(names, distinct)
    _refuse_floats(table, column, distinct)
    _refuse_twins(table, column, distinct)
    _refuse_too_many(table, column, distinct, len(rows))
    if all(_WHOLE.fullmatch(word) for word in distinct):
        return _numbered(table, column, distinct)
    found = tuple(sorted(distinct))
    said = f"{len(found)} classes, sorted by name: {_listed(found)}"
    return LabelMap(names=found, written="names"), (said, *_spelt_alike(distinct))


def _spelt_alike(distinct: dict[str, Seen]) -> tuple[str, ...]:
    """A line on classes that differ in capitals or in the space inside only."""
    groups: dict[str, list[str]] = {}
    for word in distinct:
        groups.setdefault("".join(word.casefold().split()), []).append(word)
    alike = [sorted(words) for words in groups.values() if len(words) > 1]
    if not alike:
        return ()
    shown = "; ".join(
        " and ".join(f"{word} ({distinct[word][1]:,} rows)" for word in words) for words in alike[:5]
    )
    return (f"classes that differ in capitals or spaces only, are they one? {shown}",)


def _named(names: tuple[str, ...], distinct: dict[str, Seen]) -> tuple[LabelMap, tuple[str, ...]]:
    if any(word in names for word in distinct) or not all(map(_WHOLE.fullmatch, distinct)):
        unused = [name for name in names if name not in distinct]
        notice = (f"no training row has the label {', '.join(unused)}",) if unused else ()
        return LabelMap(names=names, written="names"), notice
    return LabelMap(names=names, written="ids"), (f"the labels are ids of: {_listed(names)}",)


def _numbered(table: Table, column: str, distinct: dict[str, Seen]) -> tuple[LabelMap, tuple[str, ...]]:
    values = sorted({int(word) for word in distinct})
    for marker in _MARKERS:
        if marker in values and marker - 1 not in values and marker + 1 not in values and len(values) > 2:
            raise DataError(_marker(table, column, marker, distinct))
    found = tuple(str(value) for value in values)
    shifted = values != list(range(len(values)))
    said = f"{len(found)} classes, by number: {_listed(found)}"
    return LabelMap(names=found, written="numbers"), (f"{said}; ids count from 0" if shifted else said,)


def _listed(names: Sequence[str]) -> str:
    pairs = [f"{number} = {name}" for number, name in enumerate(names[:20])]
    return ", ".join(pairs) + (f" ... {len(names)} in all" if len(names) > 20 else "")


def _refuse_floats(table: Table, column: str, distinct: dict[str, Seen]) -> None:
    floats = [word for word in distinct if _FLOAT.fullmatch(word) and not _WHOLE.fullmatch(word)]
    if not floats or not all(map(_FLOAT.fullmatch, distinct)):
        return
    row, _ = distinct[floats[0]]
    raise DataError(
        Problem(
            where=f"{table.where(row)}  {column}",
            what=f"the label {floats[0]} is a fraction, not a class ({len(distinct):,} different values)",
            right="whole numbers or names",
            type=f"{_as_classes(distinct)}data.layout=regression to predict the number, another column "
            f"(data.columns.label), or classes in '{column}': 1 instead of 1.0",
        )
    )


def _as_classes(distinct: dict[str, Seen]) -> str:
    """The setting that takes a few whole numbers, written with a point, as the classes that they are."""
    if len(distinct) > 20 or not all(_WHOLE.fullmatch(_plainest(word)) for word in distinct):
        return ""
    return f"data.labels=[{','.join(sorted(distinct, key=float))}] to take each value as a class, "


def _refuse_twins(table: Table, column: str, distinct: dict[str, Seen]) -> None:
    """One class that rows write in two ways: 1 and 1.0, or true."""
    twins = {word: _plainest(word) for word in distinct if _plainest(word) != word}
    found = next(((word, plain) for word, plain in twins.items() if plain in distinct), None)
    if found is None:
        return
    (word, plain), (row, count) = found, distinct[found[0]]
    raise DataError(
        Problem(
            where=f"{table.where(row)}  {column}",
            what=f"the label is written {word} in {count:,} rows and {plain} in {distinct[plain][1]:,}: two "
            "classes, or one?",
            right="every class written in one way",
            type=f"{plain} instead of {word} in the file, or name all classes: data.labels=[...]",
        )
    )


def _plainest(word: str) -> str:
    """A whole number without its point, and true or false as a number."""
    if word in ("true", "false"):
        return str(int(word == "true"))
    is_whole = _FLOAT.fullmatch(word) and not _WHOLE.fullmatch(word) and "n" not in word.lower()
    return str(int(float(word))) if is_whole and float(word).is_integer() else word


def _refuse_too_many(table: Table, column: str, distinct: dict[str, Seen], num_rows: int) -> None:
    all_differ = len(distinct) == num_rows >= _ENOUGH
    if 2 <= len(distinct) <= max(100, num_rows // 2) and not all_differ:
        return
    many = len(distinct) > 1
    raise DataError(
        Problem(
            where=f"{table.path}  {column}",
            what=f"'{column}' holds {len(distinct):,} different {'labels' if many else 'label'} "
            f"in {num_rows:,} rows" + ("; it looks like a text or an id" if many else ""),
            right="two classes or more, each with several rows",
            type="another column: data.columns.label=COLUMN",
        )
    )


def _marker(table: Table, column: str, marker: int, distinct: dict[str, Seen]) -> Problem:
    row, count = next(found for word, found in distinct.items() if int(word) == marker)
    rest = sorted({int(word) for word in distinct} - {marker})
    return Problem(
        where=f"{table.where(row)}  {column}",
        what=f"{marker} is outside {rest[0]}..{rest[-1]} (first at {table.path.name}:{table.lines[row]}, "
        f"{count:,} rows): it looks like a mark for 'no label'",
        right="a class in every row",
        type="remove those rows, or name every class: data.labels=[...]",
    )

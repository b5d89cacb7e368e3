"""What divides the fields of a line: the one expected, unless another does and it does not."""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from launcher.data.text import Text

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_SEPARATOR = re.compile(r"\"?sep=([,\t;|])\"?")
_LINES = 50
_MOST_TITLES = 5


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How records are written.

    `spaced`: blanks behind a delimiter are none of the field. `escaped`: a quote inside quotes follows a
    backslash instead of being doubled.
    """

    delimiter: str
    spaced: bool = False
    escaped: bool = False

    def notices(self, expected: str) -> tuple[str, ...]:
        """What is to be said of it."""
        said = list[str]()
        if self.delimiter != expected:
            said.append(f"fields are separated by {DELIMITERS[self.delimiter]}s, not {DELIMITERS[expected]}s")
        if self.spaced:
            said.append("blanks behind a delimiter are left out")
        if self.escaped:
            said.append("a backslash stands in front of quotes inside quotes")
        return tuple(said)


def is_separator_line(line: str) -> bool:
    """Whether a first line is `sep=;`, which tells a spreadsheet the delimiter and is no row."""
    return _SEPARATOR.fullmatch(line.strip(" \r\n\ufeff")) is not None


def dialect_of(text: Text, expected: str) -> Dialect:
    """What the file itself says; else what gives its first lines the same number of fields."""
    told = _SEPARATOR.fullmatch(text.first_line().strip(" \r\n\ufeff"))
    if told is not None:
        return Dialect(delimiter=told[1])
    lines = list(islice(text.lines(""), _LINES))
    even = [each for each in map(_plain, DELIMITERS) if _is_even(lines, each)]
    if _plain(expected) in even or len(even) == 1:
        return _plain(expected) if _plain(expected) in even else even[0]
    others = (Dialect(delimiter=expected, spaced=True), Dialect(delimiter=expected, escaped=True))
    found = next((each for each in others if expected != "\t" and _is_even(lines, each)), None)
    return found or _plain(_by_header(text.first_line(), expected))


def num_titles(text: Text, dialect: Dialect) -> int:
    """Lines of one field above lines that all have as many, two or more: no column names, no rows."""
    widths = _widths(list(islice(text.lines(""), _LINES)), dialect) or []
    number = next((place for place, width in enumerate(widths) if width > 1), 0)
    rest = widths[number:]
    return number if number <= _MOST_TITLES and len(rest) > 2 and len(set(rest)) == 1 else 0


def reader_of(lines: Iterable[str], dialect: Dialect, quoting: int = csv.QUOTE_MINIMAL) -> Any:
    """The csv module's reader of such records; strict."""
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quoting=quoting,  # type: ignore[arg-type]
        skipinitialspace=dialect.spaced,
        escapechar="\\" if dialect.escaped else None,
        strict=True,
    )


def _plain(delimiter: str) -> Dialect:
    return Dialect(delimiter=delimiter)


def _is_even(lines: Sequence[str], dialect: Dialect) -> bool:
    """Whether it divides every record into the same number of fields, two or more."""
    widths = _widths(lines, dialect)
    return widths is not None and len(set(widths)) == 1 and widths[0] > 1


def _widths(lines: Sequence[str], dialect: Dialect) -> list[int] | None:
    """Fields of each record; None where quotes do not match."""
    widths = list[int]()
    try:
        for fields in reader_of(lines, dialect):
            widths += [len(fields)] if fields else []
    except csv.Error:
        if len(lines) < _LINES or not widths:
            return None
        return widths
    return widths[:-1] or widths if len(lines) == _LINES else widths  # the last may have been cut


def _by_header(header: str, expected: str) -> str:
    """The one that stands most often in the first line, where the expected one does not stand there."""
    counts = {delimiter: header.count(delimiter) for delimiter in DELIMITERS}
    most = max(counts, key=lambda delimiter: counts[delimiter])
    return expected if counts[expected] or not counts[most] else most

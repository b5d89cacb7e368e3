"""Records of delimited text with their lines, and what quotes mean in a file of tabs."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.data.delimiter import Dialect, reader_of
from launcher.data.text import Text

Record = tuple[int, list[str]]
_TABS = Dialect(delimiter="\t")


class Malformed(Exception):
    """The csv module's refusal, with the line on which the record began."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def records(text: Text, dialect: Dialect, quoting: int) -> Iterator[Record]:
    """Records with the line each starts on; blank lines are none. Raises Malformed for odd quotes."""
    # newline="": line ends inside quotes stay as they are, and only \n, \r, \r\n end a line.
    reader = reader_of(text.lines(""), dialect, quoting)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise Malformed(str(error), line) from None
        if fields:
            yield line, fields


@contextmanager
def fields_of_any_size() -> Iterator[None]:
    """Inside, a field may be as long as it is."""
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


@dataclass(frozen=True, kw_only=True)
class _Counted:
    num_records: int
    num_fields: int
    is_even: bool


def quotes_of_tabs(text: Text, path: Path) -> tuple[int, tuple[str, ...]]:
    """How to read quotes between tabs, and what to say of it; the file is looked through for that.

    They are text where they do not match, and where every line has all fields without them: texts that
    begin with a quotation mark look like quoted fields until the next such text.
    """
    if not any('"' in line for line in text.lines("")):
        return csv.QUOTE_MINIMAL, ()
    try:
        quoted = _count(text, _TABS, csv.QUOTE_MINIMAL)
    except Malformed as error:
        return csv.QUOTE_NONE, (f"{path.name}: quotes are taken as text (line {error.line}: {error})",)
    lines = _count(text, _TABS, csv.QUOTE_NONE)
    if lines.num_records > quoted.num_records and lines.is_even and lines.num_fields == quoted.num_fields:
        said = f"{path.name}: quotes are taken as text: each of the {lines.num_records:,} lines is whole "
        return csv.QUOTE_NONE, (f"{said}without them",)
    return csv.QUOTE_MINIMAL, ()


def with_backslashes(text: Text, dialect: Dialect) -> Dialect | None:
    """The dialect for a file whose quotes do not match, if they all do with backslashes in front of them."""
    escaped = replace(dialect, escaped=True)
    try:
        return escaped if _count(text, escaped, csv.QUOTE_MINIMAL).is_even else None
    except Malformed:
        return None


def _count(text: Text, dialect: Dialect, quoting: int) -> _Counted:
    """Records, the first one's fields, and whether all have as many."""
    number, width, is_even = 0, 0, True
    for _, fields in records(text, dialect, quoting):
        width = width or len(fields)
        is_even = is_even and len(fields) == width
        number += 1
    return _Counted(num_records=number, num_fields=width, is_even=is_even)

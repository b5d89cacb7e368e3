"""What divides the fields of a line: the one expected, unless another does and it does not."""

import csv
import re
from itertools import islice

from launcher.data.text import Text

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_SEPARATOR = re.compile(r"\"?sep=([,\t;|])\"?")
_LINES = 50


def is_separator_line(line: str) -> bool:
    """Whether a first line is `sep=;`, which tells a spreadsheet the delimiter and is no row."""
    return _SEPARATOR.fullmatch(line.strip(" \r\n\ufeff")) is not None


def delimiter_of(text: Text, expected: str) -> str:
    """What the file itself says; else the one by which its first lines have the same number of fields."""
    lines = list(islice(text.lines(""), _LINES))
    told = _SEPARATOR.fullmatch(text.first_line().strip(" \r\n\ufeff"))
    if told is not None:
        return told[1]
    even = [delimiter for delimiter in DELIMITERS if _is_even(lines, delimiter)]
    if expected in even:
        return expected
    return even[0] if len(even) == 1 else _by_header(text.first_line(), expected)


def _is_even(lines: list[str], delimiter: str) -> bool:
    """Whether it divides every record into the same number of fields, two or more."""
    widths = list[int]()
    try:
        for fields in csv.reader(lines, delimiter=delimiter, strict=True):
            widths += [len(fields)] if fields else []
    except csv.Error:
        if len(lines) < _LINES or not widths:
            return False
    if len(lines) == _LINES:
        widths = widths[:-1] or widths  # the last may have been cut
    return len(set(widths)) == 1 and widths[0] > 1


def _by_header(header: str, expected: str) -> str:
    """The one that stands most often in the first line, where the expected one does not stand there."""
    counts = {delimiter: header.count(delimiter) for delimiter in DELIMITERS}
    most = max(counts, key=lambda delimiter: counts[delimiter])
    return expected if counts[expected] or not counts[most] else most

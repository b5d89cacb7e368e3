"""csv and tsv: one row a record, the first of which names the columns."""

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher.data.findings import Findings, excerpt
from launcher.data.format import FORMATS, Format
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import Table
from launcher.errors import DataError, Problem

_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_LONGEST_NAME = 100
Record = tuple[int, list[str]]


def read_csv(text: str, path: Path, reading: Reading = DEFAULT) -> Table:
    """Comma-separated rows; another delimiter is taken when only it splits the header line."""
    return _read(text, path, ",", reading.column_names)


def read_tsv(text: str, path: Path, reading: Reading = DEFAULT) -> Table:
    """Tab-separated rows. Quotes are text where they do not quote."""
    return _read(text, path, "\t", reading.column_names)


def _read(text: str, path: Path, expected: str, names: tuple[str, ...] | None) -> Table:
    delimiter = _delimiter(text, expected)
    notices = []
    if delimiter != expected:
        notices.append(
            f"{path.name}: fields are separated by {_DELIMITERS[delimiter]}s, not {_DELIMITERS[expected]}s"
        )
    try:
        records = _records(text, delimiter, csv.QUOTE_MINIMAL)
    except _Malformed as error:
        if delimiter != "\t":
            raise DataError(_badly_quoted(path, error)) from None
        records = _records(text, delimiter, csv.QUOTE_NONE)
        notices.append(f"{path.name}: quotes are taken as text (line {error.line}: {error})")
    if delimiter == "\t" and (lines := _whole_lines(text, len(records[0][1]), len(records))):
        notices.append(
            f"{path.name}: quotes are taken as text: each of the {len(lines):,} lines is whole without them"
        )
        records = lines
    columns = names or _columns(records[0], path)
    rows, repeated = _without_headers(records if names else records[1:], columns)
    rows = _checked(rows, columns, path, "data.column_names" if names else "the first line")
    if repeated:
        line = f"line {repeated[0]:,}" + (" ..." if len(repeated) > 1 else "")
        notices.append(f"{path.name}: {len(repeated):,} rows repeat the column names ({line}); left out")
    return Table(
        columns=columns,
        rows=[dict(zip(columns, fields, strict=True)) for _, fields in rows],
        lines=[line for line, _ in rows],
        path=path,
        notices=tuple(notices),
    )


def _whole_lines(text: str, num_fields: int, num_records: int) -> list[Record]:
    """The lines as records, where each has all fields and quotes would join some of them; else none.

    Texts that begin with a quotation mark look like quoted fields until the next such text.
    """
    lines = _records(text, "\t", csv.QUOTE_NONE)
    whole = len(lines) > num_records and all(len(fields) == num_fields for _, fields in lines)
    return lines if whole else []


def _without_headers(records: list[Record], columns: tuple[str, ...]) -> tuple[list[Record], list[int]]:
    """Rows without those that are the column names again, and the lines of these: files were joined."""
    kept = [record for record in records if tuple(map(str.strip, record[1])) != columns]
    lines = {line for line, _ in kept}
    return kept, [line for line, _ in records if line not in lines]


def _delimiter(text: str, expected: str) -> str:
    header = text.lstrip("\r\n").split("\n", 1)[0]
    counts = {delimiter: header.count(delimiter) for delimiter in _DELIMITERS}
    most = max(counts, key=lambda delimiter: counts[delimiter])
    return expected if counts[expected] or not counts[most] else most


class _Malformed(Exception):
    """The csv module's refusal, with the line on which the record began."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _records(text: str, delimiter: str, quoting: int) -> list[Record]:
    """Records with the line each starts on; blank lines are none."""
    # newline="": line ends inside quotes stay as they are, and only \n, \r, \r\n end a line.
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=quoting,  # type: ignore[arg-type]
        strict=True,
    )
    records: list[Record] = []
    with _fields_of_any_size():
        while True:
            line = reader.line_num + 1
            try:
                fields = next(reader)
            except StopIteration:
                return records
            except csv.Error as error:
                raise _Malformed(str(error), line) from None
            if fields:
                records.append((line, fields))


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _columns(header: Record, path: Path) -> tuple[str, ...]:
    line, names = header
    columns = tuple(name.strip() for name in names)
    where = f"{path}:{line}"
    if _looks_like_a_row(columns):
        raise DataError(
            Problem(
                where=where,
                what=f"the first line looks like a row, not like column names: {excerpt(', '.join(columns))}",
                right="a first line that names the columns, such as: text,label",
                type="data.column_names=[text,label]    (with this file's own names)",
            )
        )
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise DataError(
            Problem(
                where=where,
                what=f"column '{twice[0]}' stands twice in the first line",
                right="a name of its own for every column",
                type="another name in the file's first line",
            )
        )
    return columns


def _looks_like_a_row(columns: tuple[str, ...]) -> bool:
    """Numbers are no names, but for a data frame's own: 0, 1, 2 (and nothing over its index)."""
    positions = {str(place) for place in range(len(columns))}
    if all(name == "" or name in positions for name in columns):
        return False
    return any(_is_number(name) or len(name) > _LONGEST_NAME for name in columns)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _checked(records: list[Record], columns: tuple[str, ...], path: Path, told: str) -> list[Record]:
    findings = Findings(path)
    for line, fields in records:
        if len(fields) != len(columns):
            findings.add(
                Problem(
                    where=f"{path}:{line}",
                    what=f"{len(fields)} fields: {excerpt(','.join(fields))}",
                    right=f"{len(columns)}, as in {told}: {', '.join(columns)}",
                    type="quotes around a field that holds the delimiter",
                )
            )
    findings.raise_any()
    return records


def _badly_quoted(path: Path, error: _Malformed) -> Problem:
    return Problem(
        where=f"{path}:{error.line}",
        what=f"the quotes of the record that begins here do not match: {error}",
        right='a quoted field ends with its quote; a quote inside it is doubled: "say ""hi"""',
        type="mend the quotes on that line (or those just before it)",
    )


FORMATS.register("csv", Format(name="csv", summary="comma-separated rows", suffixes=(".csv",), read=read_csv))
FORMATS.register("tsv", Format(name="tsv", summary="tab-separated rows", suffixes=(".tsv",), read=read_tsv))

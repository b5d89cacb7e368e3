"""csv and tsv: one row a record, the first of which names the columns."""

import csv
from collections.abc import Iterator
from pathlib import Path

from launcher.data.csv_records import (
    Malformed,
    Record,
    fields_of_any_size,
    quotes_of_tabs,
    records,
    with_backslashes,
)
from launcher.data.delimiter import Dialect, dialect_of, is_separator_line, num_titles
from launcher.data.findings import Findings, excerpt
from launcher.data.format import FORMATS, Format
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import RowWriter, Table
from launcher.data.text import Text
from launcher.errors import DataError, Problem

_LONGEST_NAME = 100
# Spaces, byte order marks and other characters that nobody sees.
_UNSEEN = " \t\r\n\xa0\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


def read_csv(text: Text, path: Path, reading: Reading = DEFAULT) -> Table:
    """Comma-separated rows; another delimiter is taken where only it divides the lines."""
    return _read(text, path, ",", reading.column_names)


def read_tsv(text: Text, path: Path, reading: Reading = DEFAULT) -> Table:
    """Tab-separated rows. Quotes are text where they do not quote."""
    return _read(text, path, "\t", reading.column_names)


def _read(text: Text, path: Path, expected: str, names: tuple[str, ...] | None) -> Table:
    with fields_of_any_size():
        dialect = dialect_of(text, expected)
        quoting, said = quotes_of_tabs(text, path) if dialect.delimiter == "\t" else (csv.QUOTE_MINIMAL, ())
        if names is None and (titles := num_titles(text, dialect)):
            raise DataError(_titles(path, titles))
        try:
            table, repeated = _rows(text, dialect, quoting, path, names)
        except Malformed as error:
            other = with_backslashes(text, dialect)
            if other is None or other == dialect:
                raise DataError(_badly_quoted(path, error)) from None
            dialect = other
            table, repeated = _rows(text, dialect, quoting, path, names)
    if repeated:
        line = f"line {repeated[0]:,}" + (" ..." if len(repeated) > 1 else "")
        said += (f"{path.name}: {len(repeated):,} rows repeat the column names ({line}); left out",)
    return table.said(*(f"{path.name}: {notice}" for notice in dialect.notices(expected)), *said)


def _rows(
    text: Text, dialect: Dialect, quoting: int, path: Path, names: tuple[str, ...] | None
) -> tuple[Table, list[int]]:
    found = records(text, dialect, quoting)
    if is_separator_line(text.first_line()):
        next(found)
    return _table(found, path, names)


def _table(found: Iterator[Record], path: Path, names: tuple[str, ...] | None) -> tuple[Table, list[int]]:
    """The rows, and the lines on which the column names stand again: files were joined."""
    columns = names or _columns(next(found, (1, [])), path)
    told = "data.column_names" if names else "the first line"
    unnamed = _unnamed(columns)
    writer, findings, repeated = RowWriter(), Findings(path), list[int]()
    for line, fields in found:
        if fields[0][:1] == "\ufeff":  # a file with a byte order mark was joined to another
            fields[0] = fields[0][1:]
        if len(fields) != len(columns):
            findings.add(_ragged(path, line, fields, columns, told))
        elif fields[0].strip() == columns[0] and tuple(name.strip(_UNSEEN) for name in fields) == columns:
            repeated.append(line)
        elif (
            unnamed and (place := next((each for each in unnamed if fields[each].strip()), None)) is not None
        ):
            findings.add(_under_no_name(path, line, fields[place], place))
        else:
            writer.add(dict(zip(columns, fields, strict=True)), line, sum(map(len, fields)))
    findings.raise_any()
    rows, lines = writer.done()
    return Table(columns=tuple(dict.fromkeys(columns)), rows=rows, lines=lines, path=path), repeated


def _unnamed(columns: tuple[str, ...]) -> list[int]:
    """The places of columns without a name where there are several: sheets have them, without values."""
    places = [place for place, name in enumerate(columns) if not name]
    return places if len(places) > 1 else []


def _columns(header: Record, path: Path) -> tuple[str, ...]:
    line, names = header
    columns = tuple(name.strip(_UNSEEN) for name in names)
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
    twice = sorted({name for name in columns if name and columns.count(name) > 1})
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


def _ragged(path: Path, line: int, fields: list[str], columns: tuple[str, ...], told: str) -> Problem:
    return Problem(
        where=f"{path}:{line}",
        what=f"{len(fields)} fields: {excerpt(','.join(fields))}",
        right=f"{len(columns)}, as in {told}: {', '.join(columns)}",
        type="quotes around a field that holds the delimiter"
        if len(fields) > len(columns)
        else "the missing fields, or the file without that line (cut short, or no row?)",
    )


def _titles(path: Path, number: int) -> Problem:
    lines = "the first line has" if number == 1 else f"the first {number} lines have"
    rows = path.with_name(f"{path.stem}.rows{path.suffix}")
    return Problem(
        where=f"{path}:1",
        what=f"{lines} one field, those behind more: a title stands above the column names",
        right="the column names in the first line",
        type=f"tail -n +{number + 1} {path} > {rows}",
    )


def _under_no_name(path: Path, line: int, value: str, place: int) -> Problem:
    return Problem(
        where=f"{path}:{line}",
        what=f"field {place + 1} stands under no column name: {excerpt(value)}",
        right="a name for every column that holds something",
        type="a name in the file's first line",
    )


def _badly_quoted(path: Path, error: Malformed) -> Problem:
    return Problem(
        where=f"{path}:{error.line}",
        what=f"the quotes of the record that begins here do not match: {error}",
        right='a quoted field ends with its quote; a quote inside it is doubled: "say ""hi"""',
        type="mend the quotes on that line (or those just before it)",
    )


FORMATS.register("csv", Format(name="csv", summary="comma-separated rows", suffixes=(".csv",), read=read_csv))
FORMATS.register("tsv", Format(name="tsv", summary="tab-separated rows", suffixes=(".tsv",), read=read_tsv))

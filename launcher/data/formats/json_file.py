"""json and jsonl: an array of objects, or one object a line; which of the two, the first character says."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launcher.data.findings import Findings, excerpt
from launcher.data.format import FORMATS, Format
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import Table
from launcher.errors import DataError, Problem

_SPACE = re.compile(r"[ \t\r\n]*")
_RIGHT = "an array of objects, or one object a line"
_WORDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}


class _NotJson(ValueError):
    """A word that Python's json reads although JSON has no such thing."""


def _refuse_constant(word: str) -> Any:
    raise _NotJson(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_json(text: str, path: Path, reading: Reading = DEFAULT) -> Table:
    """Records of a json or jsonl file. Raises DataError naming line, record, and what stands there."""
    first = text[_SPACE.match(text).end() :][:1]  # type: ignore[union-attr]
    findings = Findings(path)
    reader = _read_array if first == "[" else _read_lines
    lines: list[int] = []
    rows: list[dict[str, Any]] = []

    def keep(record: Any, line: int, number: int) -> None:
        if isinstance(record, dict):
            lines.append(line)
            rows.append(record)
        else:
            findings.add(_not_an_object(record, path, line, number))

    reader(text, path, findings, keep)
    findings.raise_any()
    if len(rows) == 1 and len(rows[0]) == 1 and _holds_rows(next(iter(rows[0].values()))):
        raise DataError(_one_object(path, rows[0]))
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return Table(columns=columns, rows=rows, lines=lines, path=path)


Keep = Callable[[Any, int, int], None]


def _read_lines(text: str, path: Path, findings: Findings, keep: Keep) -> None:
    number = 0
    # Not splitlines(): U+0085 and U+2028 are letters of a text, not ends of lines.
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip(" \t\r"):
            continue
        number += 1
        try:
            keep(_decode_whole(content), line, number)
        except (ValueError, RecursionError) as error:
            if number == 1 and (whole := _whole_object(text)) is not None:
                raise DataError(_one_object(path, whole)) from None
            findings.add(_unreadable(error, path, line, number, content))


def _decode_whole(content: str) -> Any:
    start = _SPACE.match(content).end()  # type: ignore[union-attr]
    value, end = _DECODER.raw_decode(content, start)
    rest = content[end:].strip(" \t\r")
    if rest:
        raise _NotJson(f"more stands behind the record: {excerpt(rest)}")
    return value


def _read_array(text: str, path: Path, findings: Findings, keep: Keep) -> None:
    """One record after another, so that a mistake is told with its own record and line."""
    place = _skip(text, text.index("[") + 1)
    line, counted, number = 1, 0, 0
    while not text.startswith("]", place):
        number += 1
        line, counted = line + text.count("\n", counted, place), place
        try:
            record, end = _DECODER.raw_decode(text, place)
            keep(record, line, number)
            place = _behind_record(text, end)
        except (ValueError, RecursionError) as error:
            findings.add(_unreadable(error, path, line, number, text[place : place + 200], start=place))
            return
    rest = text[place + 1 :].strip()
    if rest:
        line += text.count("\n", counted, place + 1 + text[place + 1 :].index(rest[0]))
        findings.add(_behind_array(path, line, rest))


def _behind_record(text: str, end: int) -> int:
    """The start of the next record, or of the closing bracket."""
    place = _skip(text, end)
    if text.startswith(",", place):
        after = _skip(text, place + 1)
        if text.startswith("]", after):
            raise _NotJson("a comma stands behind the last record")
        return after
    if text.startswith("]", place):
        return place
    if place >= len(text):
        raise _NotJson("the file ends before the array is closed with ]")
    raise _NotJson(
        f"a comma or ] is missing behind the record, in front of: {excerpt(text[place : place + 40])}"
    )


def _skip(text: str, place: int) -> int:
    return _SPACE.match(text, place).end()  # type: ignore[union-attr]


def _holds_rows(value: Any) -> bool:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return False
    return bool(value) and not {"role", "from"} & value[0].keys()  # messages are one row's


def _whole_object(text: str) -> dict[str, Any] | None:
    """The file as one object over many lines, if it is one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unreadable(
    error: ValueError | RecursionError, path: Path, line: int, number: int, content: str, *, start: int = 0
) -> Problem:
    """`content` begins at `start` of the text that the decoder was given."""
    what = str(error)
    if isinstance(error, json.JSONDecodeError):
        line += error.doc.count("\n", start, error.pos)
        what = f"{error.msg} at its character {error.pos - start + 1:,}"
    return Problem(
        where=f"{path}:{line}",
        what=f"record {number:,} is not JSON: {what}; it begins: {excerpt(content)}",
        right=_RIGHT,
        type="mend or remove that record",
    )


def _not_an_object(record: Any, path: Path, line: int, number: int) -> Problem:
    found = _WORDS.get(type(record), "null")
    return Problem(
        where=f"{path}:{line}",
        what=f"record {number:,} is {found}, not an object: {excerpt(record)}",
        right=_RIGHT,
        type='{"text": ..., "label": ...}',
    )


def _behind_array(path: Path, line: int, rest: str) -> Problem:
    kind = "a second array" if rest.startswith("[") else "something"
    return Problem(
        where=f"{path}:{line}",
        what=f"{kind} stands behind the array: {excerpt(rest)}",
        right="one array in the file",
        type="join the arrays, or write one object a line",
    )


def _one_object(path: Path, value: dict[str, Any]) -> Problem:
    lists = [name for name, inside in value.items() if isinstance(inside, list)]
    under = f", with a list under '{lists[0]}'" if lists else ""
    return Problem(
        where=f"{path}:1",
        what=f"the file is one object{under}",
        right=_RIGHT,
        type=f"jq '.{lists[0]}' {path} > rows.json" if lists else "put [ ] around the records",
    )


FORMATS.register(
    "json",
    Format(
        name="json",
        summary="an array of objects, or one object a line",
        suffixes=(".json", ".jsonl", ".ndjson"),
        read=read_json,
    ),
)

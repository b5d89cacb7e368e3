"""json and jsonl: an array of objects, or one object a line; which of the two, the first character says."""

import json
from pathlib import Path
from typing import Any

from launcher.data.findings import Findings, excerpt
from launcher.data.format import FORMATS, Format
from launcher.data.json_array import read_array
from launcher.data.json_records import BLANK, DECODER, RIGHT, Keep, NotJson, skip, unreadable
from launcher.data.reading import DEFAULT, Reading
from launcher.data.table import RowWriter, Table
from launcher.data.text import Text
from launcher.errors import DataError, Problem

_WORDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}


def read_json(text: Text, path: Path, reading: Reading = DEFAULT) -> Table:
    """Records of a json or jsonl file. Raises DataError naming line, record, and what stands there.

    Records are read one after another; of the text as much is in memory as one of them takes.
    """
    findings, writer, names = Findings(path), RowWriter(), dict[str, None]()
    first = next((piece.lstrip(BLANK)[:1] for piece in text.pieces() if piece.strip(BLANK)), "")

    def keep(record: Any, line: int, number: int, size: int) -> None:
        if isinstance(record, dict):
            if not record.keys() <= names.keys():
                names.update(dict.fromkeys(record))
            writer.add(record, line, size)
        else:
            findings.add(_not_an_object(record, path, line, number))

    if first == "[":
        read_array(text, path, findings, keep)
    else:
        _read_lines(text, path, findings, keep)
    findings.raise_any()
    rows, lines = writer.done()
    if len(rows) == 1 and len(rows[0]) == 1 and _holds_rows(next(iter(rows[0].values()))):
        raise DataError(_one_object(path, rows[0]))
    return Table(columns=tuple(names), rows=rows, lines=lines, path=path)


def _read_lines(text: Text, path: Path, findings: Findings, keep: Keep) -> None:
    number = 0
    # "\n": U+0085 and U+2028 are letters of a text, not ends of lines.
    for line, ended in enumerate(text.lines("\n"), start=1):
        content = ended.removesuffix("\n")
        if not content.strip(" \t\r"):
            continue
        number += 1
        try:
            keep(_decode_whole(content), line, number, len(content))
        except (ValueError, RecursionError) as error:
            if number == 1 and (whole := _whole_object(text.whole())) is not None:
                raise DataError(_one_object(path, whole)) from None
            findings.add(unreadable(error, path, line, number, content))


def _decode_whole(content: str) -> Any:
    value, end = DECODER.raw_decode(content, skip(content, 0))
    rest = content[end:].strip(" \t\r")
    if rest:
        raise NotJson(f"more stands behind the record: {excerpt(rest)}")
    return value


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


def _not_an_object(record: Any, path: Path, line: int, number: int) -> Problem:
    found = _WORDS.get(type(record), "null")
    return Problem(
        where=f"{path}:{line}",
        what=f"record {number:,} is {found}, not an object: {excerpt(record)}",
        right=RIGHT,
        type='{"text": ..., "label": ...}',
    )


def _one_object(path: Path, value: dict[str, Any]) -> Problem:
    lists = [name for name, inside in value.items() if isinstance(inside, list)]
    under = f", with a list under '{lists[0]}'" if lists else ""
    return Problem(
        where=f"{path}:1",
        what=f"the file is one object{under}",
        right=RIGHT,
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

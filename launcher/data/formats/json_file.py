"""json and jsonl: an array of objects, or one object a line; which of the two, the first character says."""

import json
from dataclasses import replace
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
    if len(rows) == 1 and _is_no_row(rows[0]):
        raise DataError(_one_object(path, rows[0]))
    return Table(columns=tuple(names), rows=rows, lines=lines, path=path)


def _read_lines(text: Text, path: Path, findings: Findings, keep: Keep) -> None:
    number = 0
    # "\n": U+0085 and U+2028 are letters of a text, not ends of lines.
    for line, ended in enumerate(text.lines("\n"), start=1):
        content = ended.removesuffix("\n").removeprefix("\ufeff")  # of a file that was joined to another
        if not content.strip(" \t\r"):
            continue
        number += 1
        try:
            keep(_decode_whole(content), line, number, len(content))
        except (ValueError, RecursionError) as error:
            if number == 1 and isinstance(error, json.JSONDecodeError):  # it goes on behind its line
                _refuse_objects_over_lines(text.whole(), path)
            found = unreadable(error, path, line, number, content)
            findings.add(found if ended.endswith("\n") else _cut_short(found, path))


def _cut_short(problem: Problem, path: Path) -> Problem:
    """The file's last line, without an end."""
    typed = f"fetch {path.name} again (it ends there, as if cut short), or mend or remove its last line"
    return replace(problem, type=typed)


def _decode_whole(content: str) -> Any:
    value, end = DECODER.raw_decode(content, skip(content, 0))
    rest = content[end:].strip(" \t\r")
    if rest:
        raise NotJson(f"more stands behind the record: {excerpt(rest)}")
    return value


def _is_no_row(record: dict[str, Any]) -> bool:
    """Whether the one record of a file is lists of rows by name, rows by number, or columns."""
    values = list(record.values())
    if not values or all(map(_holds_rows, values)):
        return bool(values)
    return len(values) > 1 and (all(isinstance(each, dict) for each in values) or _are_columns(values))


def _are_columns(values: list[Any]) -> bool:
    """Lists of the same length, two or more, of what is no object."""
    if not all(isinstance(each, list) and len(each) > 1 for each in values):
        return False
    return len(set(map(len, values))) == 1 and not any(isinstance(each[0], dict) for each in values)


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


def _refuse_objects_over_lines(text: str, path: Path) -> None:
    """Raises DataError for a file that is one object, or several over as many lines as they like."""
    if (whole := _whole_object(text)) is not None:
        raise DataError(_one_object(path, whole)) from None
    if (objects := _objects_over_lines(text)) > 1:
        raise DataError(_over_lines(path, objects)) from None


def _objects_over_lines(text: str) -> int:
    """How many objects stand one behind the other, over as many lines as they like; 0 where it is not so."""
    number, place = 0, skip(text, 0)
    try:
        while place < len(text):
            value, end = DECODER.raw_decode(text, place)
            if not isinstance(value, dict):
                return 0
            number, place = number + 1, skip(text, end)
    except (ValueError, RecursionError):
        return 0
    return number


def _over_lines(path: Path, number: int) -> Problem:
    return Problem(
        where=f"{path}:1",
        what=f"the file holds {number:,} objects, but not one a line",
        right=RIGHT,
        type=f"jq -c . {path} > {path.with_name(f'{path.stem}.lines.jsonl')}",
    )


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
        type=_to_rows(path, value, lists),
    )


def _to_rows(path: Path, value: dict[str, Any], lists: list[str]) -> str:
    """The line that makes rows of it: of columns, of a list inside, or of the objects under its keys."""
    rows = f"{path} > {path.with_name(f'{path.stem}.rows.json')}"
    if len(lists) > 1 and _are_columns([value[name] for name in lists]):
        names = ", ".join(f"{json.dumps(name)}: $all{_key(name)}[.]" for name in lists)
        return f"jq '. as $all | [range($all{_key(lists[0])} | length) | {{{names}}}]' {rows}"
    if lists:
        return f"jq '.{_key(lists[0]).removeprefix('.')}' {rows}"
    if len(value) > 1 and all(isinstance(each, dict) for each in value.values()):
        return f"jq '[.[]]' {rows}"
    return "put [ ] around the records"


def _key(name: str) -> str:
    return f".{name}" if name.isidentifier() and name.isascii() else f"[{json.dumps(name)}]"


FORMATS.register(
    "json",
    Format(
        name="json",
        summary="an array of objects, or one object a line",
        suffixes=(".json", ".jsonl", ".ndjson"),
        read=read_json,
    ),
)

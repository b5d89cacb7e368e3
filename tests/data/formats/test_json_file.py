"""json and jsonl, and what is told of broken ones."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from launcher.data.formats.json_file import read_json
from launcher.data.text import Held
from launcher.errors import DataError

PATH = Path("train.json")
ROWS = [
    {"text": 'a "b"\n\u2028\x85', "label": 1},
    {"text": "ü 東", "label": None},
    {"text": "c", "extra": []},
]


class InBits(Held):
    """Text that comes in pieces of three characters."""

    def pieces(self):
        yield from (self.text[start : start + 3] for start in range(0, len(self.text), 3))


KINDS = pytest.mark.parametrize("kind", [Held, InBits])


def refused(text: str, match: str, kind=Held) -> DataError:
    with pytest.raises(DataError, match=match) as error:
        read_json(kind(text), PATH)
    return error.value


@KINDS
@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("indent", [None, 2])
def test_array_is_read_with_the_line_of_each_record(escaped, indent, kind):
    text = json.dumps(ROWS, ensure_ascii=escaped, indent=indent)
    table = read_json(kind(text), PATH)
    assert table.rows == ROWS
    assert table.columns == ("text", "label", "extra")
    assert table.lines == ([2, 6, 10] if indent else [1, 1, 1])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n \t\n"])
def test_lines_are_read_and_blank_ones_skipped(end):
    text = end.join(json.dumps(row, ensure_ascii=False) for row in ROWS) + end
    table = read_json(Held(text), PATH)
    assert table.rows == ROWS
    step = end.count("\n")
    assert table.lines == [1, 1 + step, 1 + 2 * step]


@pytest.mark.parametrize("start", ["", "\n\n", "  "])
def test_first_character_decides_not_the_suffix(start):
    assert read_json(Held(start + '[{"text": "a"}]'), Path("a.jsonl")).rows == [{"text": "a"}]
    assert read_json(Held(start + '{"text": "a"}\n{"text": "b"}'), Path("a.json")).rows[1] == {"text": "b"}


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ('[{"a": 1},\n {"a": 2},]', "train.json:2", "record 2 is not JSON: a comma stands behind the last"),
        ('[{"a": 1},\n {"a"', "train.json:2", "record 2 is not JSON"),
        ('[{"a": 1},\n {"a": "cut', "train.json:2", "record 2 is not JSON: Unterminated string"),
        ('[{"a": 1}', "train.json:1", "record 1 is not JSON: the file ends before the array is closed"),
        ('[{"a": 1}\n{"a": 2}]', "train.json:1", "record 1 is not JSON: a comma or ] is missing"),
        ('[{"a": 1},\n{"a": NaN}]', "train.json:2", "record 2 is not JSON: NaN is not JSON"),
        ('[{"a": 1},\n{"a":\n 1 2}]', "train.json:3", "record 2 is not JSON: Expecting ',' delimiter"),
        ('[{"a": 1}]\n[{"a": 2}]', "train.json:2", "a second array"),
        ('[{"a": 1}]\n\nrest', "train.json:3", "something stands behind the array: rest"),
        ('[{"a": 1},\n["b"]]', "train.json:2", "record 2 is a list, not an object"),
        ('{"a": 1}\n{"a": 2', "train.json:2", "record 2 is not JSON"),
        ('{"a": 1}\n\n{"a": Infinity}', "train.json:3", "record 2 is not JSON: Infinity is not JSON"),
        ('{"a": 1}\n"b"', "train.json:2", "record 2 is text, not an object: b"),
        ('{"a": 1}\nnull', "train.json:2", "record 2 is null"),
        ('{"a": 1} {"a": 2}', "train.json:1", "more stands behind the record"),
        ('{"a": 1},\n{"a": 2},', "train.json:1", "more stands behind the record: ,"),
        ("{'a': 1}", "train.json:1", "record 1 is not JSON"),
        ('{"a": "\\x"}', "train.json:1", "Invalid"),
        ("hello", "train.json:1", "record 1 is not JSON"),
        ('{"a": "tab\there"}', "train.json:1", "Invalid control character"),
    ],
)
@KINDS
def test_broken_file_names_record_line_and_what_stands_there(text, where, what, kind):
    problem = refused(text, "train.json", kind).problems[0]
    assert problem.where == where
    assert problem.what.startswith(what) or what in problem.what


def test_every_broken_line_is_told_up_to_twenty_with_a_total():
    error = refused('{"a": 1}\n' + '{"a": \n' * 25, "record 2 is not JSON")
    assert len(error.problems) == 21
    assert error.problems[1].where == "train.json:3"
    assert "25 problems in all" in error.problems[-1].what


def test_excerpt_is_at_most_eighty_characters():
    problem = refused('{"a": "' + "x" * 500, "not JSON").problems[0]
    assert len(problem.what.partition("it begins: ")[2]) == 80


@pytest.mark.parametrize("indent", [None, 2])
def test_rows_under_a_key_are_refused_with_the_command_that_takes_them_out(indent):
    text = json.dumps({"data": ROWS}, indent=indent)
    assert "jq '.data' train.json" in refused(text, "a list under 'data'").problems[0].type


OBJECTS = [
    json.dumps({"text": ["a", "b"], "my label": [0, 1]}),
    json.dumps({"0": ROWS[0], "1": ROWS[0]}),
    json.dumps({"train": ROWS, "test": ROWS[:1]}),
    json.dumps({"rows of it": ROWS}),
    "\n".join(json.dumps(row, indent=2) for row in ROWS * 2),
]


@pytest.mark.parametrize("text", OBJECTS, ids=range(len(OBJECTS)))
def test_the_line_to_type_makes_rows_of_what_is_no_array(text, tmp_path):
    if shutil.which("jq") is None:
        pytest.skip("jq, which the line is for, is not installed")
    path = tmp_path / "train.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_json(Held(text), path)
    typed = error.value.problems[0].type
    subprocess.run(typed, shell=True, check=True)
    mended = Path(typed.rpartition(" > ")[2])
    assert len(read_json(Held(mended.read_text(encoding="utf-8")), mended).rows) >= 1


def test_columns_become_rows_by_the_line_to_type(tmp_path):
    if shutil.which("jq") is None:
        pytest.skip("jq, which the line is for, is not installed")
    path = tmp_path / "train.json"
    path.write_text(OBJECTS[0], encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_json(Held(OBJECTS[0]), path)
    subprocess.run(error.value.problems[0].type, shell=True, check=True)
    made = json.loads((tmp_path / "train.rows.json").read_text(encoding="utf-8"))
    assert made == [{"text": "a", "my label": 0}, {"text": "b", "my label": 1}]


@pytest.mark.parametrize("text", ['{"text": "a", "text": "b"}', '[{"x": {"a": 1, "a": 2}}]'])
def test_a_key_that_stands_twice_is_refused_for_one_value_would_be_lost(text):
    refused(text, "the key '(text|a)' stands there twice")


def test_a_last_line_that_is_cut_is_told_as_such():
    problem = refused('{"text": "a"}\n{"text": "b', "record 2 is not JSON").problems[0]
    assert "as if cut short" in problem.type and "remove its last line" in problem.type
    assert "cut short" not in refused('{"text": "a"}\n{"text": "b\n', "not JSON").problems[0].type


def test_a_single_record_that_is_no_json_is_not_taken_for_a_file_of_one_object():
    refused('{"text": NaN}', "record 1 is not JSON: NaN is not JSON")


def test_a_byte_order_mark_in_front_of_a_record_is_none_of_it():
    assert len(read_json(Held('{"text": "a"}\n\ufeff{"text": "b"}\n'), PATH).rows) == 2


def test_one_row_of_several_fields_is_a_row():
    assert len(read_json(Held('{"text": "a", "turns": [{"from": "b"}]}'), PATH).rows) == 1

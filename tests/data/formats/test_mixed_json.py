"""JSON as people have it: what is wrong is told with record, line and field, never as a type of a column."""

import json
from pathlib import Path

import pytest

from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import DataError

GOOD = '{"instruction": "a", "input": "", "output": "b"}'
CASES = [
    (f'[{GOOD},\n{{"instruction":"c","input":[],"output":7}}]', 2, "record 2, field 'input' is a list: []"),
    (f'[{GOOD},\n{{"instruction":"c","input":"","output":7}}]', 2, "record 2, field 'output' is a number: 7"),
    (
        f'{GOOD}\n{{"instruction": {{"a": 1}}, "output": "b"}}\n',
        2,
        "record 2, field 'instruction' is an object",
    ),
    (f'{GOOD}\n{{"instruction": true, "output": "b"}}\n', 2, "field 'instruction' is true or false: True"),
    (f'{GOOD}\n{{"instruction": "a", "output": 1.5}}\n', 2, "field 'output' is a number: 1.5"),
    (f'{GOOD}\n{{"instruction": "a", "output": "b', 2, "record 2 is not JSON: Unterminated string"),
    (f'{GOOD}\n{{"instruction": "a", "out', 2, "record 2 is not JSON"),
    (f"[{GOOD},\n{GOOD}", 2, "the file ends before the array is closed"),
    (f"[{GOOD},\n{GOOD},\n]", 2, "a comma stands behind the last record"),
    (f"[{GOOD}\n{GOOD}]", 1, "a comma or ] is missing behind the record"),
    (f"[{GOOD}]\n[{GOOD}]", 2, "a second array stands behind the array"),
    (f"[{GOOD}]\nend", 2, "something stands behind the array: end"),
    (f'{GOOD}\n{{"instruction": NaN, "output": "b"}}\n', 2, "NaN is not JSON"),
    (f'{GOOD}\n{{"instruction": Infinity, "output": "b"}}\n', 2, "Infinity is not JSON"),
    (f"{GOOD}\n[{GOOD}]\n", 2, "record 2 is a list, not an object"),
    (f'{GOOD}\n"text"\n', 2, "record 2 is text, not an object"),
    (f"{GOOD}\n{GOOD} {GOOD}\n", 2, "more stands behind the record"),
    (f"{GOOD}\n{{'instruction': 'a'}}\n", 2, "record 2 is not JSON: Expecting property name"),
    (
        f'{GOOD}\n\n{{"instruction": "a", "output": "\\ud83d"}}\n',
        3,
        "record 2, field 'output' holds half of a char",
    ),
    (
        f'{GOOD}\n{{"instruction": "a", "output": "b\tc"}}\n',
        2,
        "record 2 is not JSON: Invalid control character",
    ),
    (f'{{"data": [{GOOD}]}}', 1, "the file is one object, with a list under 'data'"),
    (f"{GOOD}\n{GOOD}\r\nnull\n", 3, "record 3 is null, not an object"),
]


def read(path: Path):
    return read_splits(DataOptions(train_file="x"), path, None, "causal_lm", 0)


@pytest.mark.parametrize(("text", "line", "what"), CASES, ids=range(len(CASES)))
def test_b032_what_is_wrong_is_told_with_record_line_and_field(write, text, line, what):
    path = write("a.json", text)
    with pytest.raises(DataError) as error:
        read(path)
    problem = error.value.problems[0]
    assert problem.where.startswith(f"{path}:{line}") and what in problem.what
    assert "Arrow" not in str(error.value) and len(problem.what) < 300


def test_b032_every_wrong_field_is_told_at_once_up_to_twenty(write):
    rows = [{"instruction": "a", "input": [], "output": 7}] * 30
    with pytest.raises(DataError) as error:
        read(write("a.json", json.dumps(rows)))
    assert len(error.value.problems) == 21
    assert "60 problems in all, the first 20 are above" in str(error.value)


@pytest.mark.parametrize("start", ["", "\ufeff", "\n \r\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_b032_marks_blank_lines_and_ids_of_two_types_do_no_harm(write, start, end):
    ids = ("1", '"two"', "3.0")
    lines = [f'{{"id": {each}, "instruction": "a", "output": "b"}}' for each in ids]
    text = start + end.join([lines[0], "", lines[1], "  ", lines[2]]) + end
    splits = read(write("a.jsonl", text.encode()))
    assert splits.train.texts["instruction"] == ["a", "a", "a"]


def test_a_single_conversation_is_a_row_and_not_a_file_of_messages(write):
    splits = read(write("a.jsonl", '{"messages": [{"role": "user", "content": "a"}]}'))
    assert len(splits.train) == 1


def test_b032_escapes_are_the_characters_that_they_stand_for(write):
    splits = read(write("a.jsonl", r'{"instruction": "\u4e2d\u6587 \ud83d\ude00", "output": "b"}'))
    assert splits.train.texts["instruction"] == ["中文 😀"]

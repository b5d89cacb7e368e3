"""Files to tables."""

import pytest

from launcher.data.read import read_rows
from launcher.data.reading import Reading
from launcher.errors import DataError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label\nthe cat,1\n"),
        ("a.CSV", "text,label\nthe cat,1\n"),
        ("a.tsv", "text\tlabel\nthe cat\t1\n"),
        ("a.json", '[{"text": "the cat", "label": "1"}]'),
        ("a.jsonl", '{"text": "the cat", "label": "1"}\n'),
    ],
)
def test_suffix_chooses_the_format(write, name, content):
    table = read_rows(write(name, content))
    assert table.columns == ("text", "label")
    assert table.rows == [{"text": "the cat", "label": "1"}]


def test_unknown_suffix_names_the_known_ones(write):
    with pytest.raises(DataError, match=r"one of: \.csv, \.json, \.jsonl"):
        read_rows(write("a.docx", "x"))


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [("a.csv", "text,label\n", "column names but no rows"), ("a.json", "[ ]", "no rows")],
)
def test_file_without_rows_is_refused(write, name, content, what):
    with pytest.raises(DataError, match=what) as error:
        read_rows(write(name, content), Reading(key="data.eval_file"))
    assert error.value.problems[0].type == "data.eval_file=FILE"

"""Columns as texts."""

from pathlib import Path

import pytest

from launcher.data.options import DataOptions
from launcher.data.recognise import recognise
from launcher.data.table import Table
from launcher.data.texts import complete_rows, documents, texts_of
from launcher.errors import DataError


def table_of(rows: list[dict], **more) -> Table:
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return Table(columns=columns, rows=rows, lines=list(range(2, len(rows) + 2)), path=Path("a.json"), **more)


def recognised(table: Table, task="classification"):
    return recognise(table, DataOptions(train_file="x"), task)


def kept(rows: list[dict], task="classification"):
    table = table_of(rows)
    found = recognised(table, task)
    return complete_rows(table, texts_of(table, found), found.layout)


def test_null_and_absent_inputs_are_empty_texts():
    rows = [{"instruction": "a", "input": None, "output": "b"}, {"instruction": "c", "output": "d"}]
    table = table_of(rows)
    assert texts_of(table, recognised(table, "causal_lm")) == {
        "instruction": ["a", "c"],
        "input": ["", ""],
        "output": ["b", "d"],
    }


def test_a_second_text_that_no_column_holds_is_no_empty_text():
    table = table_of([{"text": "a", "score": 1.5}])
    found = recognise(table, DataOptions(train_file="x", layout="regression"), "classification")
    assert texts_of(table, found) == {"text": ["a"]}


def test_anything_but_text_is_told_with_record_line_and_field():
    rows = [
        {"instruction": "a", "input": "", "output": "b"},
        {"instruction": "c", "input": [], "output": 7},
        {"instruction": "c", "input": {"x": 1}, "output": True},
    ]
    table = table_of(rows)
    with pytest.raises(DataError) as error:
        texts_of(table, recognised(table, "causal_lm"))
    assert [(problem.where, problem.what) for problem in error.value.problems] == [
        ("a.json:3  input", "record 2, field 'input' is a list: []"),
        ("a.json:4  input", "record 3, field 'input' is an object: {'x': 1}"),
        ("a.json:3  output", "record 2, field 'output' is a number: 7"),
        ("a.json:4  output", "record 3, field 'output' is true or false: True"),
    ]


def test_b033_words_for_nothing_are_texts():
    rows = [{"text": word, "label": "1"} for word in ("NA", "None", "null", "nan")]
    assert kept(rows) == ([0, 1, 2, 3], ())


@pytest.mark.parametrize("empty", ["", " \t\u3000", None])
def test_b033_one_empty_row_in_a_hundred_is_left_out_and_counted(empty):
    rows = [{"text": "good", "label": "1"}] * 99 + [{"text": empty, "label": "0"}]
    rows_kept, notices = kept(rows)
    assert rows_kept == list(range(99))
    assert notices == ("a.json: 1 of 100 rows have no text (line 101); they are left out",)


def test_b033_more_than_that_is_refused_with_the_count():
    rows = [{"text": "good", "label": "1"}] * 97 + [{"text": "", "label": "0"}] * 2
    with pytest.raises(DataError, match=r"a.json:99  2 of 99 rows have no text \(line 99, 100\)"):
        kept(rows)


def test_instruction_may_stand_in_the_input_but_an_answer_must_be_there():
    full = [{"instruction": "a", "input": "", "output": "b"}] * 200
    odd = [{"instruction": "", "input": "a", "output": "b"}, {"instruction": "a", "input": "", "output": ""}]
    rows_kept, notices = kept(full + odd, "causal_lm")
    assert rows_kept == list(range(201))
    assert "1 of 202" in notices[0]


def test_prose_with_blank_lines_is_divided_there():
    lines = ["", "one", "two", " ", "", "three", ""]
    table = table_of([{"text": line} for line in lines], is_prose=True)
    texts, starts = documents(table, {"text": lines})
    assert (texts, list(starts)) == ({"text": ["one\ntwo", "three"]}, [1, 5])


def test_prose_without_blank_lines_is_one_document_a_line():
    lines = ["one", "two"]
    table = table_of([{"text": line} for line in lines], is_prose=True)
    texts, starts = documents(table, {"text": lines})
    assert (texts, list(starts)) == ({"text": lines}, [0, 1])


def test_half_of_a_character_is_refused_before_the_tokenizer_meets_it():
    table = table_of([{"text": "\U0001f600", "label": "1"}, {"text": "a \ud83d b", "label": "1"}])
    with pytest.raises(DataError, match=r"a.json:3  text  record 2.*half of a character: .*\\ud83d"):
        texts_of(table, recognised(table))

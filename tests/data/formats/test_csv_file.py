"""csv and tsv."""

import csv
from pathlib import Path

import pytest

from launcher.data.formats.csv_file import read_csv, read_tsv
from launcher.data.text import Held
from launcher.errors import DataError

PATH = Path("train.csv")


def refused(text: str, match: str, read=read_csv) -> DataError:
    with pytest.raises(DataError, match=match) as error:
        read(Held(text), PATH)
    return error.value


def test_quoted_delimiters_quotes_and_line_ends_stay_in_the_text():
    table = read_csv(Held('text,label\n"a, ""b""\nc\r\nd",1\nplain,0\n'), PATH)
    assert [row["text"] for row in table.rows] == ['a, "b"\nc\r\nd', "plain"]
    assert table.lines == [2, 5]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_both_line_ends_are_read(end):
    table = read_csv(Held(end.join(["text,label", "a,1", "", "b,0", ""])), PATH)
    assert [(row["text"], line) for row, line in zip(table.rows, table.lines, strict=True)] == [
        ("a", 2),
        ("b", 4),
    ]


def test_letters_that_only_look_like_line_ends_do_not_end_a_row():
    text = "one\x85two\u2028three\x0bfour"
    assert read_csv(Held(f"text,label\n{text},1\n"), PATH).rows == [{"text": text, "label": "1"}]


def test_b033_words_for_nothing_stay_words():
    words = ["NA", "None", "null", "NaN", "nan", "", "#N/A"]
    table = read_csv(Held("text,label\n" + "".join(f"{word},1\n" for word in words)), PATH)
    assert [row["text"] for row in table.rows] == words


def test_other_delimiter_is_taken_where_only_it_splits_the_header_and_said():
    table = read_csv(Held("text;label\na, b;1\n"), PATH)
    assert table.rows == [{"text": "a, b", "label": "1"}]
    assert "semicolons" in table.notices[0]


def test_expected_delimiter_wins_where_it_occurs():
    assert read_csv(Held("text;x,label\na,1\n"), PATH).columns == ("text;x", "label")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('"text, en";label\ngood, really;1\nbad;0\n', ("text, en", "label")),
        ("text;label (0,1)\ngood;1\nbad, so bad, or so;0\n", ("text", "label (0,1)")),
        ("text\tlabel, or none\ngood\t1\nbad, or so\t0\n", ("text", "label, or none")),
    ],
)
def test_the_delimiter_that_divides_every_line_alike_wins_over_one_that_stands_in_the_header(text, columns):
    table = read_csv(Held(text), PATH)
    assert table.columns == columns and len(table.rows) == 2
    assert "fields are separated by" in table.notices[0]


def test_a_ragged_line_changes_no_delimiter():
    refused("text,label\na;b,1\nc;d,1,2\n", "3 fields: c;d,1,2")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [";", ","])
def test_a_spreadsheets_line_that_names_the_delimiter_is_no_row(end, delimiter):
    lines = [f"sep={delimiter}", f"text{delimiter}label", f"a{delimiter}1", ""]
    table = read_csv(Held(end.join(lines)), PATH)
    assert (table.columns, table.rows, table.lines) == (("text", "label"), [{"text": "a", "label": "1"}], [3])


def test_lines_that_end_as_on_an_old_mac_are_divided_as_others():
    table = read_csv(Held("text;label\ra, b, c, d;1\re, f, g;0\r"), PATH)
    assert [row["text"] for row in table.rows] == ["a, b, c, d", "e, f, g"]


def test_columns_of_a_sheet_without_name_and_content_are_left_aside():
    table = read_csv(Held("text,label,,\na,1,,\nb,0,, \n"), PATH)
    assert table.columns == ("text", "label", "")
    assert [(row["text"], row["label"]) for row in table.rows] == [("a", "1"), ("b", "0")]
    refused("text,label,,\na,1,,\nb,0,,c\n", "train.csv:3  field 4 stands under no column name: c")


@pytest.mark.parametrize("sign", ["\ufeff", "\u200b", "\xa0"])
def test_what_nobody_sees_in_a_column_name_is_none_of_it(sign):
    assert read_csv(Held(f"{sign}text,label{sign}\na,1\n"), PATH).columns == ("text", "label")


def test_files_with_byte_order_marks_that_were_joined_have_no_row_of_names():
    table = read_csv(Held("text,label\na,1\n\ufefftext,label\nb,0\n\ufeffc,1\n"), PATH)
    assert [row["text"] for row in table.rows] == ["a", "b", "c"]
    assert "1 rows repeat the column names (line 3)" in table.notices[0]


def test_field_longer_than_the_csv_modules_limit_is_read_and_the_limit_left_alone():
    before = csv.field_size_limit()
    long = "word " * 60_000
    assert read_csv(Held(f"text,label\n{long},1\n"), PATH).rows[0]["text"] == long
    assert csv.field_size_limit() == before


def test_ragged_rows_are_told_with_line_and_excerpt_and_counted_beyond_twenty():
    text = "text,label\n" + "good,1\n" * 3 + "a,b,c\n" * 30
    error = refused(text, r"train.csv:5  3 fields: a,b,c")
    assert len(error.problems) == 21
    assert "30 problems in all" in error.problems[-1].what


def test_twenty_problems_need_no_total():
    assert len(refused("text,label\n" + "a,b,c\n" * 20, "3 fields").problems) == 20


@pytest.mark.parametrize("header", ["1,2.26,The Rock is destined", "I love it,1", "x" * 101 + ",label"])
def test_first_line_that_is_a_row_is_refused(header):
    refused(f"{header}\na,1\n", "looks like a row")


@pytest.mark.parametrize("header", [",text,label", "0,1", ",0,1", "text,label"])
def test_a_data_frames_own_names_are_names(header):
    num_columns = header.count(",") + 1
    row = ",".join("a" * num_columns)
    assert read_csv(Held(f"{header}\n{row}\n"), PATH).columns == tuple(header.split(","))


def test_column_named_twice_is_refused():
    refused("text,text\na,b\n", "'text' stands twice")


@pytest.mark.parametrize(
    ("text", "line"),
    [('text,label\nok,1\n"never closed,1\nx,0\n', 3), ('text,label\nok,1\n\n"a "b" c",1\nx,0\n', 4)],
)
def test_quotes_that_do_not_match_are_told_with_the_line_where_the_record_begins(text, line):
    refused(text, f"train.csv:{line}  the quotes")


def test_quotes_in_a_tsv_that_do_not_quote_are_text_and_said():
    table = read_tsv(Held('text\tlabel\n"a "b" c\t1\nd\t0\n"e\t1\n'), PATH)
    assert [row["text"] for row in table.rows] == ['"a "b" c', "d", '"e']
    assert "quotes are taken as text" in table.notices[0]


def test_quotes_in_a_tsv_that_quote_are_not_text():
    table = read_tsv(Held('text\tlabel\n"a\tb"\t1\n'), PATH)
    assert table.rows == [{"text": "a\tb", "label": "1"}]
    assert table.notices == ()


def test_blanks_behind_a_delimiter_in_front_of_quotes_are_left_out_and_said():
    table = read_csv(Held('label, text\n1, "good, really"\n0, "bad, so"\n'), PATH)
    assert [row["text"] for row in table.rows] == ["good, really", "bad, so"]
    assert "blanks behind a delimiter" in table.notices[0]


@pytest.mark.parametrize("num_plain", [0, 100])
def test_backslashes_in_front_of_quotes_are_read_wherever_they_begin_and_said(num_plain):
    text = "text,label\n" + '"plain, c:\\new",1\n' * num_plain
    table = read_csv(Held(text + '"he said \\"hi, you\\"",1\n"so",0\n'), PATH)
    assert [row["text"] for row in table.rows[num_plain:]] == ['he said "hi, you"', "so"]
    assert "a backslash stands in front of quotes" in table.notices[0]


def test_backslashes_of_a_file_whose_quotes_match_are_text():
    assert read_csv(Held('text,label\n"c:\\new ""x""",1\n'), PATH).rows[0]["text"] == 'c:\\new "x"'


def test_a_title_above_the_column_names_is_told_once_with_the_line_that_takes_it_off():
    error = refused("Export of 2026\n\ntext,label\na,1\nb,0\n", "a title stands above the column names")
    assert len(error.problems) == 1 and error.problems[0].type.startswith("tail -n +2 train.csv >")


def test_too_few_fields_are_not_blamed_on_quotes():
    refused("text,label\na,1\nb,0\n3 rows\n", "the file without that line")

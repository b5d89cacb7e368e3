"""What is told of columns that look right and are not, and of values that only some formats have."""

import json
from decimal import Decimal

import pytest

from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.data.survey import survey
from launcher.errors import DataError, LauncherError

TALK = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def read(path, task="classification", **options):
    return read_splits(DataOptions(train_file="x", **options), path, None, task, 0)


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_names_inside_of_objects_are_shown_and_can_be_typed(write):
    path = write("a.jsonl", lines(*({"data": {"words": f"t {n}", "y": n % 2}} for n in range(4))))
    with pytest.raises(DataError, match=r"the columns are: data \(with data.words, data.y\)"):
        read(path)
    assert len(read(path, columns={"text": "data.words", "label": "data.y"}).train) == 4


def test_a_name_with_a_comma_is_one_column(write):
    path = write("a.csv", '"text, en",label\na,1\nb,0\n')
    with pytest.raises(DataError, match="the columns are: 'text, en', label"):
        read(path)


def test_conversations_that_are_text_are_told_as_what_they_are(write):
    path = write("a.jsonl", lines({"messages": json.dumps(TALK)}))
    with pytest.raises(DataError, match=r"'messages' holds \[.*, not a list of messages"):
        read(path, "causal_lm")


def test_a_first_conversation_without_messages_hides_no_column(write):
    found = read(write("a.jsonl", lines({"messages": []}, *[{"messages": TALK}] * 3)), "causal_lm")
    assert found.layout == "messages" and len(found.train) == 4


def test_conversations_without_an_answer_are_a_problem_before_a_tokenizer_is_there(write):
    path = write("a.jsonl", lines({"messages": TALK}, *[{"messages": TALK[:1]}] * 2))
    found = survey(DataOptions(train_file=str(path)), None, 0)
    assert "2 of 3 conversations have no assistant's turn" in found.problems[0].what
    assert found.problems[0].where == f"{path}:2" and found.lengths is not None
    path = write("b.jsonl", lines(*[{"messages": TALK}] * 3))
    assert survey(DataOptions(train_file=str(path)), None, 0).problems == ()


def test_which_text_is_missing_is_told_by_record_where_lines_tell_nothing(write):
    rows = [{"instruction": "a", "input": "", "output": "" if number % 2 else "b"} for number in range(6)]
    with pytest.raises(DataError, match=r"3 of 6 rows have no output \(record 2, 4, 6\)"):
        read(write("a.json", json.dumps(rows)), "causal_lm")
    rows[0] |= {"instruction": " "}
    with pytest.raises(DataError, match=r"4 of 6 rows have no instruction or input, no output \(line 1, 2"):
        read(write("a.jsonl", lines(*rows)), "causal_lm")


@pytest.mark.parametrize("name", ["a.xlsx", "a.docx"])
def test_a_sheet_is_named_and_is_not_to_be_read_as_csv(write, name):
    with pytest.raises(LauncherError, match="Excel sheet") as error:
        read(write(name, b"PK\x03\x04" + bytes(60)))
    assert "export it as csv" in error.value.problems[0].type


def test_fixed_point_numbers_and_bytes_of_parquet_are_numbers_and_texts(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow writes the file")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    columns = {
        "text": [f"caf\u00e9 {number}".encode() for number in range(4)],
        "label": [Decimal(number % 2) for number in range(4)],
        "score": [Decimal("1.5") + number for number in range(4)],
    }
    parquet.write_table(pyarrow.table(columns), path)
    found = read(path, columns={"label": "label"})
    assert list(found.train.texts["text"]) == [f"caf\u00e9 {number}" for number in range(4)]
    assert found.train.labels.tolist() == [0, 1, 0, 1]
    numbers = read(path, layout="regression", columns={"label": "score"})
    assert numbers.train.labels.tolist() == [1.5, 2.5, 3.5, 4.5]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow writes the file")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": [b"\xff\xfe"] * 4, "label": [0, 1, 0, 1]}), path)
    with pytest.raises(DataError, match="record 1, field 'text' is bytes"):
        read(path)

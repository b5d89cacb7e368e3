"""C1 controls that stand for punctuation."""

from pathlib import Path

from launcher.data.options import DataOptions
from launcher.data.read import read_rows
from launcher.data.reading import Reading
from launcher.data.repair import repair
from launcher.data.split import read_splits
from launcher.data.table import Table

RIGHT = "text,label\nshe’s here… wait — “no”,1\nplain,0\n"


def test_b030_c1_in_utf8_true_cp1252_and_right_utf8_give_equal_texts(write):
    as_c1 = RIGHT.encode("cp1252").decode("latin-1").encode()
    files = [
        write(name, data)
        for name, data in (
            ("right.csv", RIGHT.encode()),
            ("c1.csv", as_c1),
            ("cp1252.csv", RIGHT.encode("cp1252")),
        )
    ]
    tables = [read_rows(file) for file in files]
    assert tables[0].rows == tables[1].rows == tables[2].rows
    assert len(tables[1].rows) == 2  # U+0085 ends no row
    assert tables[0].notices == ()
    assert "5 C1 control characters in 1 fields became" in tables[1].notices[0]
    assert "read as cp1252" in tables[2].notices[0]


def test_b030_switched_off_nothing_changes_and_they_are_counted(write):
    path = write("a.csv", "text,label\nshe\x92s here\x85,1\nb,0\n")
    table = read_rows(path, Reading(repair_c1=False))
    assert table.rows[0]["text"] == "she\x92s here\x85"
    assert table.notices == ("a.csv: 2 C1 control characters are left as they are",)


def test_escapes_in_json_and_values_inside_lists_are_repaired(write):
    path = write("a.json", r'[{"text": "it\u0092s", "messages": [{"role": "user", "content": "a\u0085"}]}]')
    (row,) = read_rows(path).rows
    assert row == {"text": "it’s", "messages": [{"role": "user", "content": "a…"}]}


def test_controls_without_a_meaning_stay_and_are_told():
    table = Table(columns=("text",), rows=[{"text": "a\x81b"}], lines=[1], path=Path("a.csv"))
    found = repair(table)
    assert found.rows == [{"text": "a\x81b"}]
    assert found.notices == ("a.csv: 1 C1 control characters stand for nothing and stay",)


def test_non_breaking_spaces_become_spaces_only_beside_c1_controls():
    def repaired(*texts: str) -> list[str]:
        table = Table(
            columns=("text",), rows=[{"text": text} for text in texts], lines=[1] * len(texts), path=Path("a")
        )
        return [row["text"] for row in repair(table).rows]

    assert repaired("10\u00a0km") == ["10\u00a0km"]
    assert repaired("right.\u00a0 Sure", "it\x92s") == ["right.  Sure", "it’s"]


def test_labels_are_repaired_with_the_texts(write):
    path = write("a.csv", "text,label\na,don\x92t\nb,do\n")
    assert read_splits(DataOptions(train_file="x"), path, None, "classification", 0).label_names == (
        "do",
        "don’t",
    )

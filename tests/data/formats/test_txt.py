"""txt."""

from pathlib import Path

import pytest

from launcher.data.formats.txt import read_txt
from launcher.data.text import Held


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_is_a_row_blank_ones_too(end):
    table = read_txt(Held(end.join(["one", "", "two  ", ""])), Path("a.txt"))
    assert [row["text"] for row in table.rows] == ["one", "", "two  "]
    assert table.lines == [1, 2, 3]
    assert table.is_prose


def test_only_line_ends_end_a_line():
    assert len(read_txt(Held("a\x85b\u2028c\x0cd"), Path("a.txt")).rows) == 1


def test_byte_order_marks_of_joined_files_are_no_text():
    rows = read_txt(Held("one\n\ufefftwo\n"), Path("a.txt")).rows
    assert [row["text"] for row in rows] == ["one", "two"]

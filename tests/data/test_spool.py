"""Rows in a file are the rows, in any order of looking."""

import datetime
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from launcher.data import spool
from launcher.data.formats.csv_file import read_csv
from launcher.data.picked import Picked, pick
from launcher.data.runs import Runs
from launcher.data.spool import Spool, SpoolWriter, blocks_of, mapped, viewed
from launcher.data.text import Held

ROWS = [
    {"text": f"row {number} ü\ud83d", "label": number % 3, "list": [None, 1.5, True]} for number in range(50)
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of seven rows, none of which stays in memory."""
    monkeypatch.setattr(spool, "BLOCK_ROWS", 7)
    monkeypatch.setattr(spool, "HELD_BYTES", 0)


def spooled(items: list) -> Spool:
    writer = SpoolWriter()
    for item in items:
        writer.add(item, 10)
    assert len(writer) == len(items)
    found = writer.done()
    assert isinstance(found, Spool)
    return found


def test_few_rows_come_back_as_a_list() -> None:
    writer = SpoolWriter[int]()
    writer.extend(range(3), 24)
    assert writer.done() == [0, 1, 2]


@pytest.mark.usefixtures("small")
def test_many_rows_are_the_same_by_number_slice_and_in_turn() -> None:
    rows = spooled(ROWS)
    assert list(rows) == ROWS == [row for block in blocks_of(rows) for row in block]
    assert [rows[place] for place in (49, 0, 13, -1, 7)] == [ROWS[place] for place in (49, 0, 13, -1, 7)]
    for part in (slice(3, 30), slice(None, None, 9), slice(40, 99), slice(5, 5), slice(-3, None)):
        assert rows[part] == ROWS[part]
    with pytest.raises(IndexError):
        rows[50]


@pytest.mark.usefixtures("small")
def test_a_large_row_ends_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BLOCK_SIZE", 15)
    assert [len(block) for block in blocks_of(spooled(list(range(5))))] == [2, 2, 1]


@pytest.mark.usefixtures("small")
def test_what_cannot_be_written_stays_in_memory() -> None:
    days = [datetime.date(2026, 1, day) if day % 9 == 0 else day for day in range(1, 31)]
    assert list(spooled(days)) == days


@pytest.mark.usefixtures("small")
def test_changed_seen_and_picked_rows_follow_the_rows() -> None:
    rows = spooled(ROWS)
    changed = mapped(rows, lambda number, row: (number, row["label"]))
    assert isinstance(changed, Spool) and changed[20] == (20, 2)
    assert viewed(rows, len)[3:5] == [3, 3]
    index = np.array([1, 8, 9, 40])
    picked = pick(rows, index)
    assert isinstance(picked, Picked) and list(picked) == [ROWS[place] for place in index]
    assert list(pick(picked, np.array([0, 3]))) == [ROWS[1], ROWS[40]] == picked[::3]


def test_runs_stand_for_every_place() -> None:
    runs = Runs[str]()
    for item, number in (("a", 2), ("none", 0), ("b", 3)):
        runs.add(item, number)
    assert list(runs) == ["a", "a", "b", "b", "b"] and runs[1:3] == ["a", "b"] and runs[-1] == "b"
    with pytest.raises(IndexError):
        runs[5]


def peak_bytes(num_rows: int) -> int:
    """Most memory that Python held while that many rows of a csv were read."""
    text = Held("text,label\n" + "a text of some words,1\n" * num_rows)
    tracemalloc.start()
    try:
        table = read_csv(text, Path("a.csv"))
        assert len(table.rows) == num_rows
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_twice_the_rows_take_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "HELD_BYTES", 2**18)
    one, two = peak_bytes(10_000), peak_bytes(20_000)
    copy = 23 * 10_000 * 4  # the text itself, which StringIO holds in four bytes a letter
    assert two - one - copy < 0.2 * one

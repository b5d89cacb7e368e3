"""Columns made out of others, and layouts chosen by them."""

from pathlib import Path

import pytest

from launcher.data.columns import make
from launcher.data.options import DataOptions
from launcher.data.recognise import recognise
from launcher.data.table import Table
from launcher.errors import DataError

NESTED = {"id": 1, "instances": [{"input": "i", "output": "o"}], "a.b": "dotted", "a": {"b": "inside"}}


def table_of(row: dict, path: str = "data/pos/one.part.txt") -> Table:
    return Table(columns=tuple(row), rows=[row], lines=[1], path=Path(path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("instances.0.output", "o"),
        ("instances.1.output", None),
        ("instances.0.nothing.more", None),
        ("a.b", "dotted"),
        ("id+instances.0.input", [1, "i"]),
        ("@file", "one"),
        ("@folder", "pos"),
        ("id", 1),
    ],
)
def test_made_column_holds_what_its_name_says(name, value):
    assert make(name, table_of(NESTED)).rows[0][name] == value


def test_table_itself_is_left_alone():
    table = table_of(NESTED)
    make("instances.0.output", table)
    assert "instances.0.output" not in table.rows[0]


def recognised(names, task="classification", /, **options):
    row = dict.fromkeys(names, "a")
    return recognise(table_of(row), DataOptions(train_file="x", **options), task)


@pytest.mark.parametrize(
    ("columns", "task", "layout"),
    [
        (("premise", "hypothesis", "label"), "classification", "text_pair"),
        (("question", "sentence", "label"), "classification", "text_pair"),
        (("Utterance", "Speaker", "Emotion", "Sentiment", "Dialogue_ID"), "classification", "dialogue"),
        (("prompt", "completion"), "causal_lm", "prompt_completion"),
    ],
)
def test_layout_that_uses_most_columns_is_taken(columns, task, layout):
    assert recognised(columns, task).layout.name == layout


def test_layout_with_fewer_columns_can_be_asked_for_and_is_offered():
    columns = ("Utterance", "Speaker", "Emotion", "Dialogue_ID")
    said = recognised(columns).said(table_of(dict.fromkeys(columns, "a")))
    assert said.endswith("; data.layout=text_label leaves the other columns aside")
    assert recognised(columns, layout="text_label").layout.name == "text_label"


def test_emorynlp_scene_is_one_only_with_its_season_and_episode():
    columns = ("Utterance", "Speaker", "Emotion", "Scene_ID", "Utterance_ID", "Season", "Episode")
    assert recognised(columns).columns["dialogue"] == "Season+Episode+Scene_ID"
    given = recognised(columns, columns={"dialogue": "Episode"})
    assert given.columns["dialogue"] == "Episode"


def test_numbers_and_sets_are_only_taken_where_they_are_asked_for():
    columns = ("text", "label")
    assert recognised(columns).layout.name == "text_label"
    for layout in ("regression", "multi_label"):
        assert recognised(columns, layout=layout).layout.name == layout


def test_column_that_cannot_be_made_is_refused():
    with pytest.raises(DataError, match="there is no column 'nothing.0'"):
        recognised(("text", "label"), columns={"text": "nothing.0"})

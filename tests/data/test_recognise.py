"""Which layout a file has."""

from pathlib import Path

import pytest

from launcher.data.layout import LAYOUTS
from launcher.data.options import DataOptions
from launcher.data.recognise import apply, recognise
from launcher.data.table import Table
from launcher.errors import DataError, UnknownSetting

MELD = ("Sr No.", "Utterance", "Speaker", "Emotion", "Sentiment", "Dialogue_ID")
TWO = ("Sr No.", "Utterance", "Emotion", "Sentiment")


def table_of(*columns: str) -> Table:
    return Table(columns=columns, rows=[dict.fromkeys(columns, "a")], lines=[2], path=Path("train.csv"))


def found(names, task="classification", /, **options):
    return recognise(table_of(*names), DataOptions(train_file="x", **options), task)


def refused(match: str, *arguments, **options) -> str:
    with pytest.raises(DataError, match=match) as error:
        found(*arguments, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("columns", "task", "layout", "roles"),
    [
        (("text", "label"), "classification", "text_label", {"text": "text", "label": "label"}),
        (("Sentence", "ID", "Class"), "classification", "text_label", {"text": "Sentence", "label": "Class"}),
        (
            ("instruction", "input", "output"),
            "causal_lm",
            "instruction",
            {"instruction": "instruction", "input": "input", "output": "output"},
        ),
        (
            ("instruction", "output"),
            "causal_lm",
            "instruction",
            {"instruction": "instruction", "output": "output"},
        ),
        (("text", "url"), "causal_lm", "plain_text", {"text": "text"}),
    ],
)
def test_layout_is_recognised_from_the_columns(columns, task, layout, roles):
    recognised = found(columns, task)
    assert (recognised.layout.name, recognised.columns) == (layout, roles)


def test_what_was_recognised_is_said():
    table = table_of("text", "label")
    said = recognise(table, DataOptions(train_file="x"), "classification").said(table)
    assert said == "train.csv: 1 rows, layout text_label (text = 'text', label = 'label')"


def test_role_of_the_columns_own_name_beats_other_names():
    assert found(("text", "review", "label", "rating")).columns == {"text": "text", "label": "label"}


def test_two_columns_for_one_role_are_refused_with_both_choices_to_type():
    message = refused("more than one column could be the label: Emotion, Sentiment", TWO)
    assert "'data.columns={text: Utterance, label: Emotion}'" in message
    assert "'data.columns={text: Utterance, label: Sentiment}'" in message


def test_choice_that_was_typed_is_taken():
    recognised = found(TWO, columns={"text": "Utterance", "label": "Emotion"})
    assert recognised.columns == {"text": "Utterance", "label": "Emotion"}
    assert found(TWO, columns={"label": "Sentiment"}).columns["label"] == "Sentiment"


def test_two_layouts_that_fit_are_refused_with_both_choices_to_type():
    columns = ("instruction", "output", "text")
    message = refused("fit more than one layout", columns, "causal_lm")
    assert "data.layout=instruction or data.layout=plain_text" in message
    assert found(columns, "causal_lm", layout="plain_text").columns == {"text": "text"}


def test_role_that_was_typed_decides_between_layouts():
    columns = ("instruction", "output", "text")
    assert found(columns, "causal_lm", columns={"output": "output"}).layout.name == "instruction"


def test_missing_column_names_the_role_and_the_columns():
    message = refused("no column for label; the columns are: text, kind", ("text", "kind"))
    assert "'data.columns={text: text, label: COLUMN}'" in message


def test_unknown_column_names_the_nearest():
    assert "data.columns.text=Utterance" in refused(
        "no column 'utterence'", MELD, columns={"text": "utterence"}
    )


def test_unknown_role_names_the_nearest():
    assert "data.columns.label=COLUMN" in refused("'lable' is not a role", MELD, columns={"lable": "Emotion"})


def test_layout_for_another_task_is_refused():
    refused("is for task causal_lm, the recipe's task is classification", MELD, layout="instruction")


def test_unknown_layout_is_refused():
    with pytest.raises(UnknownSetting, match="text_label"):
        found(MELD, layout="text_lable")


def test_evaluation_file_is_read_as_the_training_file_was():
    recognised = found(TWO, columns={"label": "Emotion"})
    assert apply(recognised, table_of(*TWO)) is recognised
    with pytest.raises(DataError, match="no column 'Emotion', which the training file has"):
        apply(recognised, table_of("Utterance", "Sentiment"))


@pytest.mark.parametrize("layout", list(LAYOUTS), ids=lambda layout: layout.name)
def test_every_layout_is_whole(layout):
    names = [role.name for role in layout.roles]
    assert len(set(names)) == len(names)
    assert all(alias == alias.lower() for role in layout.roles for alias in role.aliases)
    assert {role for group in layout.complete for role in group} <= set(names)
    assert layout.task in ("classification", "causal_lm")

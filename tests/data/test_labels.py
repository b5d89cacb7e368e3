"""Labels to class ids, checked before a GPU sees them."""

from pathlib import Path
from typing import Any

import pytest

from launcher.data.labels import learn_labels
from launcher.data.table import Table
from launcher.errors import DataError


def table_of(labels: list[Any]) -> Table:
    rows = [{"text": "a", "label": label} for label in labels]
    return Table(
        columns=("text", "label"), rows=rows, lines=list(range(2, len(rows) + 2)), path=Path("train.csv")
    )


def learnt(labels: list[Any], names: tuple[str, ...] | None = None):
    """(names, ids, notices) of a training file's labels."""
    table = table_of(labels)
    rows = range(len(labels))
    found, notices = learn_labels(table, "label", rows, names)
    return found.names, found.ids(table, "label", rows).tolist(), notices


def refused(match: str, labels: list[Any], names: tuple[str, ...] | None = None) -> DataError:
    with pytest.raises(DataError, match=match) as error:
        learnt(labels, names)
    return error.value


def test_names_are_sorted_and_said():
    names, ids, notices = learnt(["joy", "anger", "joy", " fear "])
    assert (names, ids) == (("anger", "fear", "joy"), [2, 0, 2, 1])
    assert notices == ("3 classes, sorted by name: 0 = anger, 1 = fear, 2 = joy",)


def test_classes_that_differ_in_capitals_or_spaces_only_are_pointed_at():
    names, ids, notices = learnt(["Pos", "pos", "not  sure", "not sure", "neg", "pos"])
    assert len(names) == 5 and ids[1] == ids[5] != ids[0]
    assert notices[1].endswith(
        "are they one? Pos (1 rows) and pos (2 rows); not  sure (1 rows) and not sure (1 rows)"
    )
    assert len(learnt(["b", "a"])[2]) == 1


def test_numbers_are_sorted_as_numbers():
    names, ids, notices = learnt(["10", "2", "1", "10"])
    assert (names, ids) == (("1", "2", "10"), [2, 1, 0, 2])
    assert "0 = 1, 1 = 2, 2 = 10; ids count from 0" in notices[0]


@pytest.mark.parametrize("labels", [[1, 0, 1], ["1", "0", "01"], ["+1", "0", "1 "]])
def test_numbers_are_the_same_however_they_are_written(labels):
    assert learnt(labels)[:2] == (("0", "1"), [1, 0, 1])


def test_signs_are_three_classes_not_a_mark_for_nothing():
    assert learnt([-1, 0, 1])[:2] == (("-1", "0", "1"), [0, 1, 2])


def test_truth_values_are_two_classes():
    assert learnt([True, False])[:2] == (("false", "true"), [1, 0])


def test_order_of_the_recipes_names_is_the_order_of_the_ids():
    assert learnt(["b", "a"], ("b", "a"))[:2] == (("b", "a"), [0, 1])


def test_ids_are_accepted_beside_the_recipes_names():
    names, ids, notices = learnt([1, 0, 1], ("negative", "positive"))
    assert (names, ids) == (("negative", "positive"), [1, 0, 1])
    assert "0 = negative, 1 = positive" in notices[0]


def test_recipes_names_may_be_numbers():
    assert learnt(["5", "1"], ("1", "3", "5"))[1] == [2, 0]


def test_name_without_a_row_is_told():
    assert learnt(["a", "b"], ("a", "b", "c"))[2] == ("no training row has the label c",)


def test_b035_ids_counted_from_one_are_refused_with_line_and_range():
    labels = [1, 2, 3, 4, 5, 6] * 200 + [2, 3, 7]
    message = str(refused(r"7 is outside 0..6 \(first at train.csv:1204", labels, tuple("abcdefg")))
    assert "counted from 1" in message


@pytest.mark.parametrize("wrong", [-1, 255, -100, 7])
def test_b035_ids_outside_the_recipes_classes_are_refused(wrong):
    error = refused(
        rf"{wrong} is outside 0..6 \(first at train.csv:4", [0, 6, wrong, 1, wrong], tuple("abcdefg")
    )
    assert "2 rows" in error.problems[0].what
    assert error.problems[0].where == "train.csv:4  label"


@pytest.mark.parametrize("mark", [255, -100, 999])
def test_b035_marks_for_no_label_are_refused_where_the_recipe_names_no_classes(mark):
    refused(rf"{mark} is outside .* \(first at train.csv:5", [0, 1, 2, mark, 1])


@pytest.mark.parametrize("labels", [[1.0, 0.0], ["1.0", "0.0"], [0.5, 2.25], ["1e3", "2"], ["nan", "1"]])
def test_b035_fractions_are_no_classes(labels):
    refused("is a fraction, not a class", labels)


def test_whole_numbers_with_a_point_can_be_classes_by_what_is_typed():
    typed = refused("is a fraction", [2.0, 0.0, 10.0]).problems[0].type
    assert typed.startswith("data.labels=[0.0,2.0,10.0] to take each value as a class")
    assert learnt([2.0, 0.0, 10.0], ("0.0", "2.0", "10.0"))[1] == [1, 0, 2]
    assert "data.labels" not in refused("is a fraction", [0.5, 1.0]).problems[0].type


def test_b035_every_wrong_id_is_told_once():
    error = refused("outside", [0, 9, 8, 9, 8, 1], ("a", "b"))
    assert [problem.where for problem in error.problems] == ["train.csv:3  label", "train.csv:4  label"]


@pytest.mark.parametrize("missing", [None, "", "  ", float("nan")])
def test_missing_label_is_refused_with_its_line(missing):
    assert refused("the label is missing", ["a", missing, "b"]).problems[0].where == "train.csv:3  label"


def test_list_is_no_label():
    refused("not one word or number", [["a"], ["b"]])


def test_unknown_name_is_refused_with_the_nearest():
    error = refused("label 'postive' is not a class", ["positive", "postive"], ("negative", "positive"))
    assert "nearest: positive" in error.problems[0].right


def test_one_class_is_refused():
    refused("1 different label in 3 rows", ["a"] * 3)


def test_a_column_of_texts_is_no_column_of_labels():
    refused("looks like a text or an id", [f"text {number}" for number in range(300)])


def test_rows_that_all_have_a_label_of_their_own_have_no_classes():
    refused("20 different labels in 20 rows", [f"row {number}" for number in range(20)])
    assert len(learnt([f"row {number}" for number in range(19)])[0]) == 19  # few: a trial


def test_evaluation_label_that_training_never_had_is_refused_with_file_and_line():
    train, other = table_of(["a", "b"]), table_of(["b", "neutral", "neutral"])
    found, _ = learn_labels(train, "label", range(2), None)
    with pytest.raises(DataError, match=r"train.csv:3  label  label 'neutral' is not a class") as error:
        found.ids(other, "label", range(3))
    assert "2 rows" in error.value.problems[0].what


def test_evaluation_number_that_training_never_had_is_refused():
    found, _ = learn_labels(table_of([1, 2]), "label", range(2), None)
    assert found.ids(table_of(["2", "01"]), "label", range(2)).tolist() == [1, 0]
    with pytest.raises(DataError, match="label '3' is not a class"):
        found.ids(table_of([3]), "label", range(1))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1, 0, 1.0, 1, "no"], "written 1.0 in 1 rows and 1 in 2"),
        (["0", "1", True], "written true in 1 rows and 1 in 1"),
        (["no", "2", "2.0"], "written 2.0 in 1 rows and 2 in 1"),
    ],
)
def test_one_class_written_in_two_ways_is_refused_with_its_line(labels, said):
    error = refused(said, labels)
    assert error.problems[0].where.startswith("train.csv:") and "data.labels" in error.problems[0].type


def test_classes_that_only_look_alike_are_as_they_are():
    assert learnt(["v1.0", "v1", "true", "maybe"])[0] == ("maybe", "true", "v1", "v1.0")

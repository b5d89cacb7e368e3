"""Sets of classes, and numbers."""

from pathlib import Path

import numpy as np
import pytest

from launcher.data.label_sets import learn_sets
from launcher.data.number_labels import learn_numbers
from launcher.data.table import Table
from launcher.errors import DataError


def table_of(*values, column="label"):
    lines = list(range(2, len(values) + 2))
    return Table(
        columns=(column,), rows=[{column: value} for value in values], lines=lines, path=Path("a.csv")
    )


def sets(*values, names=None, column="label"):
    table = table_of(*values, column=column)
    found, said = learn_sets(table, column, range(len(values)), names)
    return found.names, found.ids(table, column, range(len(values))).tolist(), said


@pytest.mark.parametrize("first", ["a, b", "a;b", "a|b", "['a', 'b']", ["a", "b"]])
def test_sets_are_lists_or_names_in_one_field(first):
    names, vectors, said = sets(first, "", "b")
    assert names == ("a", "b")
    assert vectors == [[1, 1], [0, 0], [0, 1]]
    assert said == ("2 classes: 0 = a (1), 1 = b (2); 1.00 a row on average",)


def test_columns_of_zero_and_one_are_classes_too():
    names, vectors, _ = sets(["1", "0"], [0, True], [None, "no"], column="toxic+rude")
    assert names == ("toxic", "rude")
    assert vectors == [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("values", "column", "what"),
    [
        (({"a": 1}, "b"), "label", "this is no set of classes"),
        ((["2", "0"], ["1", "1"]), "a+b", "0 or 1 in each column"),
        (("a", "a"), "label", "holds 1 class"),
    ],
)
def test_what_is_no_set_is_told_with_its_line(values, column, what):
    with pytest.raises(DataError, match=what):
        sets(*values, column=column)


def test_class_that_training_does_not_know_names_the_nearest():
    found, _ = learn_sets(table_of("good, bad", "bad"), "label", range(2), None)
    with pytest.raises(DataError, match=r"a.csv:2  label .*'god' .*(\n.*)?nearest: good"):
        found.ids(table_of("god"), "label", range(1))


def test_numbers_are_told_with_their_range():
    table = table_of("1.5", -2, "3e0")
    found, said = learn_numbers(table, "label", range(3))
    assert found.names == ("label",)
    numbers = found.ids(table, "label", range(3))
    assert numbers.dtype == np.float32 and numbers.tolist() == [1.5, -2.0, 3.0]
    assert said[0].startswith("'label' from -2 to 3, mean 0.8333")


@pytest.mark.parametrize("value", ["", None, "high", "nan", "inf", "1e999", True, [1]])
def test_what_is_no_number_is_told_with_its_line(value):
    with pytest.raises(DataError, match="a.csv:3  label"):
        learn_numbers(table_of("1", value), "label", range(2))


def test_numbers_that_never_differ_are_refused():
    with pytest.raises(DataError, match="'label' is 2 in every row"):
        learn_numbers(table_of(2, "2.0"), "label", range(2))

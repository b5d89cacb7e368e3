"""The same row twice, and rows on both sides of training and evaluation."""

import random
from pathlib import Path

import numpy as np
import pytest

from launcher.data.duplicates import contradicted, distinct, leaked, prints_of, repeated
from launcher.data.examples import Examples
from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import DataError


def prints(rows):
    """Of (text, label) rows."""
    texts, labels = zip(*rows, strict=True)
    return prints_of(
        Examples(
            layout="text_label",
            texts={"text": list(texts)},
            labels=np.array(labels),
            lines=range(len(rows)),
            path=Path("a.csv"),
        )
    )


@pytest.mark.parametrize("kinds", [1, 5, 40, 10**6])
def test_repetitions_are_those_of_a_plain_look_at_every_pair(kinds):
    draw = random.Random(kinds)
    rows = [(f" a text of enough letters {draw.randrange(kinds)}", draw.randrange(3)) for _ in range(80)]
    first: dict[str, int] = {}
    seen, again, against = set(), [], []
    for number, (text, label) in enumerate(rows):
        if (text, label) in seen:
            again.append(number)
        seen.add((text, label))
        if first.setdefault(text, label) != label:
            against.append(number)
    found = prints(rows)
    assert repeated(found).tolist() == again
    assert distinct(found).tolist() == [number for number in range(80) if number not in again]
    assert contradicted(found).tolist() == against
    other = [("short", 0), *rows[:5], ("another text of enough letters", 1)]
    assert leaked(prints([*rows, ("short", 0)]), prints(other)).tolist() == [1, 2, 3, 4, 5]


LONG = "a text of more than twenty characters, number {}"


def rows_of(*numbers, label="1"):
    return "".join(f'"{LONG.format(number)}",{label}\n' for number in numbers)


def split(write, train, evaluation=None, **options):
    train_path = write("train.csv", "text,label\n" + train + "x,0\n")
    eval_path = None if evaluation is None else write("eval.csv", "text,label\n" + evaluation)
    return read_splits(DataOptions(train_file="x", **options), train_path, eval_path, "classification", 0)


def test_few_evaluation_rows_of_training_are_counted_and_many_refused(write):
    train = rows_of(*range(100))
    told = split(write, train, rows_of(1, 2, *range(200, 298))).notices
    assert any("2 of 100 evaluation rows (2.0%) are trained on too (first: " in notice for notice in told)
    with pytest.raises(DataError, match=r"6 of 100 evaluation rows \(6.0%\) are trained on too") as error:
        split(write, train, rows_of(*range(6), *range(200, 294)))
    problem = error.value.problems[0]
    assert problem.where.endswith("eval.csv:2") and "data.max_leaked_fraction=0.061" in problem.type
    allowed = split(write, train, rows_of(*range(100)), max_leaked_fraction=1.0)
    assert len(allowed.evaluation) == 100


def test_short_texts_may_meet_by_chance(write):
    assert len(split(write, "yes,1\nno,0\n" * 5, "yes,1\nno,0\n" * 5).evaluation) == 10


def test_repeated_rows_are_told_and_left_out_where_asked(write):
    train = rows_of(1, 2, 1, 1)
    splits = split(write, train)
    assert any("2 of 5 rows repeat an earlier one" in notice for notice in splits.notices)
    splits = split(write, train, drop_duplicates=True)
    assert len(splits.train) == 3 and splits.train.lines == [2, 3, 6]
    assert any("2 repeated rows are left out" in notice for notice in splits.notices)


def test_same_text_with_two_labels_is_told_and_both_stay(write):
    splits = split(write, rows_of(1) + rows_of(1, label="0"), drop_duplicates=True)
    assert len(splits.train) == 3
    assert any("1 texts stand there twice with different labels" in notice for notice in splits.notices)


def test_file_of_repetitions_cannot_be_divided_until_they_are_gone(write):
    train = rows_of(*range(40)) * 2
    with pytest.raises(DataError, match="data.drop_duplicates=true"):
        split(write, train, eval_fraction=0.2)
    splits = split(write, train, eval_fraction=0.2, drop_duplicates=True)
    assert len(splits.train) + len(splits.evaluation) == 41


def test_class_weights_are_those_of_scikit_learn(write):
    sklearn = pytest.importorskip("sklearn.utils.class_weight", reason="scikit-learn is the reference")
    splits = split(write, rows_of(*range(9)), class_weights="balanced")
    labels = splits.train.labels
    expected = sklearn.compute_class_weight("balanced", classes=np.unique(labels), y=labels)
    assert splits.class_weights == pytest.approx(expected.tolist())
    assert sum(np.array(splits.class_weights)[labels]) == pytest.approx(len(labels))
    assert split(write, rows_of(*range(9))).class_weights is None


def test_b044_uneven_classes_are_told(write):
    splits = split(write, rows_of(*range(20)))
    assert any("classes are uneven: 1 has 20 training rows, 0 1;" in notice for notice in splits.notices)


def test_entities_and_breaks_are_told_and_kept_or_written_out(write):
    train = '"a &amp; b<br /><br/>c &notit; &amp;lt;",1\n'
    kept = split(write, train)
    assert kept.train.texts["text"][0] == "a &amp; b<br /><br/>c &notit; &amp;lt;"
    told = "train.csv: 1 texts hold HTML entities such as &amp; and 1 texts hold <br />: "
    assert f"{told}kept; data.html=clean writes them out" in kept.notices
    cleaned = split(write, train, html="clean")
    assert cleaned.train.texts["text"][0] == "a & b\n\nc &notit; &lt;"
    assert f"{told}written out (data.html: clean)" in cleaned.notices


@pytest.mark.parametrize(("policy", "rows"), [("drop", 2), ("keep", 4)])
def test_b033_empty_texts_go_or_stay_as_the_recipe_says(write, policy, rows):
    splits = split(write, '"",1\na,1\n" ",0\n', empty_text=policy)
    assert len(splits.train) == rows
    assert any("2 of 4 rows have no text (line 2, 4)" in notice for notice in splits.notices)


@pytest.mark.parametrize("policy", ["auto", "error"])
def test_b033_empty_texts_are_refused_otherwise(write, policy):
    with pytest.raises(DataError, match="2 of 4 rows have no text"):
        split(write, '"",1\na,1\n" ",0\n', empty_text=policy)


def test_b033_one_empty_row_in_200_is_dropped_unless_none_is_allowed(write):
    train = rows_of(*range(200)) + '"",1\n'
    assert len(split(write, train).train) == 201
    with pytest.raises(DataError, match="1 of 202 rows have no text"):
        split(write, train, empty_text="error")


def test_names_that_stand_in_the_file_again_are_left_out_and_told(write):
    splits = split(write, rows_of(1) + "text,label\n" + rows_of(2))
    assert len(splits.train) == 3
    assert "train.csv: 1 rows repeat the column names (line 3); left out" in splits.notices


def test_headerless_files_get_their_names_from_the_recipe(write):
    path = write("a.csv", "1,good\n0,bad\n")
    options = DataOptions(train_file="x", column_names=("label", "text"))
    splits = read_splits(options, path, None, "classification", 0)
    assert splits.train.texts["text"] == ["good", "bad"] and splits.train.lines == [1, 2]

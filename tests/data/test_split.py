"""From files to training and evaluation examples."""

import numpy as np
import pytest

from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import DataError

# Sorted by class, as many files are.
SORTED = "text,label\n" + "".join(
    f"text {number},{'neg' if number < 500 else 'pos'}\n" for number in range(1000)
)


@pytest.fixture
def split(write):
    """split(train, eval=None, task, seed, **options) of csv or json texts."""

    def read(train, evaluation=None, *, task="classification", seed=0, suffix="csv", **options):
        train_path = write(f"train.{suffix}", train)
        eval_path = None if evaluation is None else write(f"eval.{suffix}", evaluation)
        return read_splits(DataOptions(train_file="x", **options), train_path, eval_path, task, seed)

    return read


def test_rows_labels_lines_and_notices_come_through(split):
    splits = split("text,label\ngood,pos\nbad,neg\n")
    assert splits.train.texts == {"text": ["good", "bad"]}
    assert splits.train.labels.tolist() == [1, 0]
    assert splits.train.lines == [2, 3]
    assert (splits.layout, splits.label_names, splits.evaluation) == ("text_label", ("neg", "pos"), None)
    assert len(splits.notices) == 2


def test_b033_fixture_reports_its_empty_row_and_keeps_words(split):
    fixture = "text,label\nhello,1\n,0\nNA,1\nNone,0\n"
    with pytest.raises(DataError, match=r"train.csv:3  1 of 4 rows have no text"):
        split(fixture)
    longer = fixture + "good,1\n" * 100
    splits = split(longer)
    assert splits.train.texts["text"][:3] == ["hello", "NA", "None"]
    assert splits.train.lines[:3] == [2, 4, 5]
    assert splits.train.labels[:3].tolist() == [1, 1, 0]
    assert any("1 of 104 rows have no text (line 3)" in notice for notice in splits.notices)


def test_label_of_an_empty_row_is_not_asked_for(split):
    splits = split("text,label\n,\n" + "good,a\nbad,b\n" * 60)
    assert len(splits.train) == 120


def test_held_out_rows_and_training_rows_are_all_rows_once(split):
    splits = split(SORTED, eval_fraction=0.2)
    assert (len(splits.train), len(splits.evaluation)) == (800, 200)
    assert sorted(splits.train.lines + splits.evaluation.lines) == list(range(2, 1002))
    assert set(splits.train.texts["text"]).isdisjoint(splits.evaluation.texts["text"])


def test_held_out_rows_depend_on_the_seed_alone(split):
    first, again, other = (split(SORTED, eval_fraction=0.2, seed=seed) for seed in (1, 1, 2))
    assert first.evaluation.lines == again.evaluation.lines != other.evaluation.lines


def test_held_out_rows_hold_both_classes_of_a_sorted_file(split):
    counts = np.bincount(split(SORTED, eval_fraction=0.2).evaluation.labels)
    assert min(counts) > 70


@pytest.mark.parametrize(("rows", "fraction"), [(2, 0.01), (2, 0.99), (5, 0.9)])
def test_both_sides_get_at_least_one_row(split, rows, fraction):
    table = "text,label\n" + "".join(f"t{number},{number % 2}\n" for number in range(rows))
    splits = split(table, eval_fraction=fraction)
    assert len(splits.train) >= 1 and len(splits.evaluation) >= 1


def test_one_row_cannot_be_divided(split):
    with pytest.raises(DataError, match="one row cannot be divided"):
        split('{"text": "a"}', task="causal_lm", suffix="json", eval_fraction=0.5)


def test_rows_are_drawn_by_seed_and_never_the_first(split):
    drawn, again, other = (split(SORTED, max_train_rows=100, seed=seed).train for seed in (1, 1, 2))
    assert drawn.lines == again.lines != other.lines
    assert min(np.bincount(drawn.labels)) > 30
    assert drawn.lines == sorted(drawn.lines)


def test_classes_are_those_of_the_whole_file_however_few_rows_are_drawn(split):
    assert split(SORTED, max_train_rows=1).label_names == ("neg", "pos")


def test_evaluation_rows_are_drawn_too(split):
    splits = split(SORTED, SORTED, max_eval_rows=50)
    assert (len(splits.train), len(splits.evaluation)) == (1000, 50)


def test_a_limit_above_the_number_of_rows_is_said_to_have_no_effect(split):
    notices = split(SORTED, eval_fraction=0.2, max_train_rows=800, max_eval_rows=300).notices
    assert [notice for notice in notices if "no effect" in notice] == [
        "data.max_train_rows=800 has no effect: there are 800 rows",
        "data.max_eval_rows=300 has no effect: there are 200 rows",
    ]


def test_drawn_rows_are_no_order_of_an_epoch(split):
    """The streams of the seed differ: a draw that equalled an epoch's order would tie the two together."""
    lines = {name: split(SORTED, seed=3, **{name: value}) for name, value in (("max_train_rows", 500),)}
    drawn = np.array(lines["max_train_rows"].train.lines) - 2
    for epoch in range(4):
        order = np.random.default_rng([3, epoch]).permutation(1000)[:500]
        assert len(set(order) & set(drawn)) < 350


def test_evaluation_label_unseen_in_training_is_refused_with_its_file(split):
    with pytest.raises(DataError, match=r"eval.csv:2  label  label 'neutral'"):
        split("text,label\ngood,pos\nbad,neg\n", "text,label\nhm,neutral\n")


def test_evaluation_file_may_lack_a_class(split):
    assert split("text,label\ngood,pos\nbad,neg\n", "text,label\nhm,pos\n").evaluation.labels.tolist() == [1]


def test_evaluation_file_with_other_columns_is_refused(split):
    with pytest.raises(DataError, match=r"eval.csv  there is no column 'label'"):
        split("text,label\ngood,pos\nbad,neg\n", "text,kind\nhm,pos\n")


def test_placeholders_are_filled_in_every_text_of_both_files(split):
    rows = '[{"instruction": "Who is {{name}}?", "output": "I am {{name}}, {{age}}."}]'
    options = {"fill": {"name": "Ada"}, "max_leaked_fraction": 1.0}
    splits = split(rows, rows, task="causal_lm", suffix="json", **options)
    for examples in (splits.train, splits.evaluation):
        assert examples.texts["instruction"] == ["Who is Ada?"]
        assert examples.texts["output"] == ["I am Ada, {{age}}."]
    assert any("{{age}} stands unfilled 2 times" in notice for notice in splits.notices)


def test_prose_is_divided_into_documents(split):
    splits = split("one\ntwo\n\nthree\n", task="causal_lm", suffix="txt")
    assert splits.train.texts == {"text": ["one\ntwo", "three"]}
    assert splits.train.labels is None and splits.label_names == ()

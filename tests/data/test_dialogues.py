"""Utterances of a dialogue."""

import numpy as np
import pytest

from launcher.data.dialogues import speaker_of
from launcher.data.options import DataOptions
from launcher.data.split import read_splits
from launcher.errors import DataError

HEAD = "Utterance,Speaker,Emotion,Dialogue_ID,Utterance_ID\n"


def read(write, rows, **options):
    path = write("a.csv", HEAD + rows)
    return read_splits(DataOptions(train_file="x", **options), path, None, "classification", 0)


def test_b044_utterances_stand_in_the_order_of_their_ids_not_of_the_file(write):
    splits = read(write, "b,Al,joy,7,1\nx,Bo,fear,2,0\na,Bo,joy,7,0\nc,Al,joy,7,10\n")
    dialogues = splits.train.dialogues
    assert dialogues.texts == ["a", "b", "c", "x"]
    assert dialogues.speakers == ["Bo", "Al", "Al", "Bo"]
    assert dialogues.offsets.tolist() == [0, 3, 4]
    assert splits.train.utterances.tolist() == [1, 3, 0, 2]
    assert [splits.train.dialogue_of(row) for row in range(4)] == [(0, 1), (1, 0), (0, 0), (0, 2)]


def test_b044_gaps_and_repeated_ids_are_told(write):
    splits = read(
        write, "a,A,joy,0,0\nb,A,joy,0,2\nc,A,fear,1,0\nd,A,fear,1,1\ne,A,joy,2,1\nf,A,joy,3,0\ng,A,joy,3,0\n"
    )
    assert any(" 2 dialogues have gaps in their utterance ids" in notice for notice in splits.notices)
    assert any(" 1 dialogues have an utterance id twice" in notice for notice in splits.notices)


def test_empty_utterance_is_no_row_but_stays_in_its_dialogue(write):
    rows = "".join(f"u{number},A,{'joy' if number % 2 else 'fear'},0,{number}\n" for number in range(200))
    splits = read(write, rows.replace("u5,", " ,"))
    assert len(splits.train) == 199 and len(splits.train.dialogues.texts) == 200
    assert splits.train.dialogue_of(5) == (0, 6)


def test_held_out_dialogues_are_whole(write):
    rows = "".join(
        f"utterance {number} of {dialogue},A,{'joy' if number else 'fear'},{dialogue},{number}\n"
        for dialogue in range(20)
        for number in range(3)
    )
    splits = read(write, rows, eval_fraction=0.2)
    ours = {splits.train.dialogue_of(row)[0] for row in range(len(splits.train))}
    theirs = {splits.evaluation.dialogue_of(row)[0] for row in range(len(splits.evaluation))}
    assert not ours & theirs and len(ours | theirs) == 20
    assert (len(splits.train), len(splits.evaluation)) == (48, 12)


def test_drawn_rows_keep_the_utterances_around_them(write):
    rows = "".join(f"u{number},A,{'joy' if number % 2 else 'fear'},0,{number}\n" for number in range(9))
    splits = read(write, rows, max_train_rows=2)
    assert len(splits.train) == 2 and len(splits.train.dialogues.texts) == 9
    texts = [splits.train.dialogues.texts[place] for place in splits.train.utterances]
    assert texts == splits.train.texts["text"]


def test_row_without_its_dialogue_and_id_that_is_no_number_are_refused(write):
    with pytest.raises(DataError, match=r"a.csv:3  Dialogue_ID.*is missing"):
        read(write, "a,A,joy,0,0\nb,A,fear,,1\n")
    with pytest.raises(DataError, match="a.csv:3  Utterance_ID.*no number: second"):
        read(write, "a,A,joy,0,0\nb,A,fear,0,second\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("['Monica Geller']", "Monica Geller"),
        ("[\"Joey's dad\", 'Al']", "Joey's dad"),
        ("Ross", "Ross"),
        ("[]", "[]"),
    ],
)
def test_speaker_is_the_name_in_a_written_list(text, name):
    assert speaker_of(text) == name


def test_take_keeps_everything_of_a_row(write):
    train = read(write, "a,Al,joy,0,0\nb,Bo,fear,0,1\n").train
    taken = train.take(np.array([1]))
    assert (taken.texts["text"], taken.utterances.tolist(), taken.lines) == (["b"], [1], [3])

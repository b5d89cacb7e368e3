"""Dialogue context: of the same dialogue, whole turns, the utterance itself never cut for them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.data.context import Contexts
from launcher.data.examples import Dialogues, Examples
from launcher.data.lengths import Length
from launcher.data.options import ContextOptions, DataOptions
from launcher.data.ragged import Ragged
from launcher.data.relevance import TfIdf, words
from launcher.data.tokens import tokenise
from launcher.errors import BadValue

TALK = [
    ["the cat sat", "a dog", "good", "not funny", "the cat was good"],
    ["what is your name", "i am the dog"],
    ["funny"],
]


def dialogue(rows: list[int] | None = None, talk: list[list[str]] = TALK) -> Examples:
    """Two speakers, `a` and `i`, in turn; `rows` are places of all utterances, all where None."""
    texts = [text for each in talk for text in each]
    speakers = ["a" if turn % 2 == 0 else "i" for each in talk for turn in range(len(each))]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in talk])]).astype(np.int64)
    places = list(range(len(texts))) if rows is None else rows
    return Examples(
        layout="dialogue",
        texts={"text": [texts[place] for place in places], "speaker": [speakers[place] for place in places]},
        labels=np.array(places, dtype=np.int64),
        lines=[place + 2 for place in places],
        path=Path("talk.csv"),
        dialogues=Dialogues(texts=texts, speakers=speakers, offsets=offsets),
        utterances=np.array(places, dtype=np.int64),
    )


def shown(examples, tokenizer, max_length=64, **context) -> list[str]:
    options = DataOptions(train_file="x", max_length=max_length, context=context)
    store = tokenise(examples, tokenizer, options=options, task="classification")
    pairs = zip(store.offsets[:-1], store.offsets[1:], strict=True)
    return [tokenizer.decode(store.input_ids[start:stop]) for start, stop in pairs]


def test_b044_context_stays_in_the_dialogue_and_in_the_order_of_speaking(word_tokenizer):
    rows = shown(dialogue(), word_tokenizer, turns=3, speakers=False)
    assert rows[0] == "[CLS] the cat sat [SEP]"
    assert rows[3] == "[CLS] the cat sat [SEP] a dog [SEP] good [SEP] not funny [SEP]"
    assert rows[4] == "[CLS] a dog [SEP] good [SEP] not funny [SEP] the cat was good [SEP]"
    assert rows[5] == "[CLS] what is your name [SEP]"
    assert rows[7] == "[CLS] funny [SEP]"


def test_rows_drawn_away_still_are_context(word_tokenizer):
    rows = shown(dialogue([4, 6]), word_tokenizer, turns=1, speakers=False)
    assert rows == [
        "[CLS] not funny [SEP] the cat was good [SEP]",
        "[CLS] what is your name [SEP] i am the dog [SEP]",
    ]


def test_speakers_stand_in_front_of_every_turn(minilm_tokenizer):
    rows = shown(dialogue([1]), minilm_tokenizer, turns=1)
    assert rows == ["[CLS] a : the cat sat [SEP] i : a dog [SEP]"]


def test_the_nearest_turns_stay_whole_and_without_a_hole(word_tokenizer):
    """Room for 9 beside [CLS] and the last utterance's 5: `not funny` (3) and `good` (2), not `a dog`."""
    rows = shown(dialogue([4]), word_tokenizer, max_length=12, turns=4, speakers=False)
    assert rows == ["[CLS] good [SEP] not funny [SEP] the cat was good [SEP]"]


def test_the_turns_that_share_rare_words_stay(word_tokenizer):
    rows = shown(dialogue([4]), word_tokenizer, max_length=12, turns=4, speakers=False, retention="tfidf")
    assert rows == ["[CLS] the cat sat [SEP] good [SEP] the cat was good [SEP]"]


def test_where_everything_fits_both_strategies_are_the_same(word_tokenizer):
    nearest, scored = (
        shown(dialogue(), word_tokenizer, turns=4, retention=name) for name in ("nearest", "tfidf")
    )
    assert nearest == scored


@given(
    max_length=st.integers(7, 40), turns=st.integers(1, 5), retention=st.sampled_from(["nearest", "tfidf"])
)
def test_the_utterance_is_never_cut_for_its_context(word_tokenizer, max_length, turns, retention):
    alone = shown(dialogue(), word_tokenizer, turns=0)
    rows = shown(dialogue(), word_tokenizer, max_length, turns=turns, retention=retention, speakers=False)
    for row, own in zip(rows, alone, strict=True):
        assert row.endswith(own.removeprefix("[CLS] "))
        assert len(row.split()) <= max_length


def test_only_an_utterance_that_is_too_long_alone_loses_its_end(word_tokenizer):
    options = DataOptions(train_file="x", max_length=5, context={"turns": 2, "speakers": False})
    store = tokenise(dialogue(), word_tokenizer, options=options, task="classification")
    row = store.input_ids[store.offsets[4] : store.offsets[5]]
    assert word_tokenizer.decode(row) == "[CLS] the cat was [SEP]"
    assert "show fewer turns of context, 3 of them lose their own end" in store.notices[0]


def test_percentile_counts_rows_with_their_context(word_tokenizer):
    options = DataOptions(
        train_file="x", max_length={"percentile": 100, "cap": 512}, context={"turns": 9, "speakers": False}
    )
    store = tokenise(dialogue(), word_tokenizer, options=options, task="classification")
    assert store.max_length == 24
    assert int(store.lengths.max()) == 18
    fixed = Length(value=10, reason="the training rows'")
    assert (
        tokenise(dialogue(), word_tokenizer, options=options, task="classification", length=fixed).max_length
        == 10
    )


def behind(examples, tokenizer, max_length=64, **context):
    place = {"turns": 4, "speakers": False, "place": "behind", **context}
    options = DataOptions(train_file="x", max_length=max_length, context=place)
    return tokenise(examples, tokenizer, options=options, task="classification", token_types=True)


def test_context_behind_the_utterance_is_the_second_text_of_a_pair(word_tokenizer):
    store = behind(dialogue([4, 7]), word_tokenizer, max_length=12)
    assert word_tokenizer.decode(store.input_ids[: store.offsets[1]]) == (
        "[CLS] the cat was good [SEP] good [SEP] not funny [SEP]"
    )
    assert store.token_types.tolist() == [0] * 6 + [1] * 5 + [0] * 3


def test_where_context_stands_changes_neither_the_turns_nor_the_lengths(word_tokenizer):
    for most in (7, 12, 20, 64):
        front = shown(dialogue(), word_tokenizer, most, turns=4, speakers=False)
        store = behind(dialogue(), word_tokenizer, most)
        pairs = zip(store.offsets[:-1], store.offsets[1:], strict=True)
        rows = [word_tokenizer.decode(store.input_ids[start:stop]) for start, stop in pairs]
        for one, other in zip(front, rows, strict=True):
            turns = one.removeprefix("[CLS] ").removesuffix(" [SEP]").split(" [SEP] ")
            assert other == f"[CLS] {' [SEP] '.join([turns[-1], *turns[:-1]])} [SEP]"
        assert len(store.token_types) == len(store.input_ids)


def test_an_utterance_that_is_cut_has_no_second_text(word_tokenizer):
    store = behind(dialogue([4]), word_tokenizer, max_length=5)
    assert word_tokenizer.decode(store.input_ids) == "[CLS] the cat was [SEP]"
    assert store.token_types.tolist() == [0] * 5


def test_uncut_lengths_are_those_of_the_rows(word_tokenizer):
    contexts = Contexts(dialogue(), word_tokenizer, ContextOptions(turns=3), None)
    assert contexts.lengths.tolist() == contexts.fit(500).rows.lengths.tolist()


def test_windows_of_rows_with_context_are_refused(word_tokenizer):
    options = DataOptions(train_file="x", overflow="windows", context={"turns": 2})
    with pytest.raises(BadValue, match="farthest turns go first"):
        tokenise(dialogue(), word_tokenizer, options=options, task="classification")


def test_scores_by_hand():
    """Utterances `a b`, `a c`, `d`: idf(a) = ln(4/3)+1, the others ln(4/2)+1."""
    talk = Dialogues(texts=["a b", "a c", "d"], speakers=["", "", ""], offsets=np.array([0, 3]))
    common, rare = np.log(4 / 3) + 1, np.log(2) + 1
    found = TfIdf(talk)([(0, [1, 2])], Ragged.from_lists([[1], [2], [3]]), [])
    assert found[0] == pytest.approx([common**2 / (common**2 + rare**2), 0.0])


def test_words_are_counted_without_case_and_signs():
    assert words("Really?! really, I’m") == {"really": 2, "i": 1, "m": 1}

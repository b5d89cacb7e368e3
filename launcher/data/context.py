"""An utterance and what was said before it as one row; the utterance itself is never given up for them.

A row is the earlier turns in the order of speaking, then the utterance, each with its speaker's name in
front and the tokenizer's closing ids (a line break where it has none) behind. Turns are whole or absent.
They are taken as long as there is room: the nearest first, or those of the highest score first.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from launcher.data.encode import closing, encode, opening
from launcher.data.examples import Dialogues, Examples
from launcher.data.options import ContextOptions
from launcher.data.overflow import Fitted
from launcher.data.ragged import Int64, Ragged, offsets_of, positions, same_in_every_row, side_by_side
from launcher.data.relevance import Scores


def spoken(text: str, speaker: str, *, with_speaker: bool) -> str:
    """An utterance as the model reads it: `Name: text`."""
    return f"{speaker}: {text}" if with_speaker and speaker else text


class Contexts:
    """Rows of dialogues, their context not chosen yet."""

    def __init__(
        self, examples: Examples, tokenizer: Any, options: ContextOptions, scores: Scores | None
    ) -> None:
        """Every utterance becomes ids once. `scores`: None keeps the nearest turns."""
        assert examples.dialogues is not None and examples.utterances is not None, "a dialogue layout"
        self.places = examples.utterances
        self.opening = opening(tokenizer)
        self.scores = scores
        self.turns = _encode_turns(examples.dialogues, tokenizer, options)
        self.first = self._first_turns(examples.dialogues, options.turns)

    def _first_turns(self, dialogues: Dialogues, most: int) -> Int64:
        """Of every row, the farthest turn that it may see: of its own dialogue, at most `most` back."""
        number = np.searchsorted(dialogues.offsets, self.places, side="right") - 1
        first: Int64 = np.maximum(dialogues.offsets[number], self.places - most)
        return first

    @property
    def lengths(self) -> Int64:
        """Ids of each row with all the turns that it may see."""
        before = offsets_of(self.turns.lengths)
        return before[self.places + 1] - before[self.first] + len(self.opening)

    def fit(self, max_length: int) -> Fitted:
        """Rows of at most `max_length` ids. An utterance that is too long alone loses its end."""
        long = np.flatnonzero(self.lengths > max_length)
        chosen = self._chosen(long.tolist(), max_length)
        order = np.fromiter((turn for turns in chosen for turn in turns), dtype=np.int64)
        rows = self._rows(order, np.fromiter(map(len, chosen), dtype=np.int64, count=len(chosen)))
        rows, num_cut = self._cut(rows, max_length)
        said = "show fewer turns of context" + (
            f", {num_cut:,} of them lose their own end" if num_cut else ""
        )
        return Fitted(rows=rows, sources=None, num_long=len(long), notice=said)

    def _chosen(self, long: list[int], max_length: int) -> list[Sequence[int]]:
        """The turns of every row, its own utterance last."""
        firsts, places = self.first.tolist(), self.places.tolist()
        pairs = zip(firsts, places, strict=True)
        found: list[Sequence[int]] = [range(first, place + 1) for first, place in pairs]
        asked = [(places[row], list(range(places[row] - 1, firsts[row] - 1, -1))) for row in long]
        scores = self.scores(asked, self.turns, self.opening) if self.scores else [None] * len(asked)
        costs = self.turns.lengths.tolist()
        for row, (place, nearest), given in zip(long, asked, scores, strict=True):
            room = max_length - len(self.opening) - costs[place]
            found[row] = [*_kept(nearest, given, room, costs), place]
        return found

    def _rows(self, order: Int64, counts: Int64) -> Ragged:
        turns = self.turns.take(order)
        before = offsets_of(counts)
        ends = turns.offsets[before]
        joined = Ragged(values=turns.values, offsets=ends)
        return side_by_side([same_in_every_row(self.opening, len(counts)), joined])

    def _cut(self, rows: Ragged, max_length: int) -> tuple[Ragged, int]:
        kept = np.minimum(rows.lengths, max_length)
        num_cut = int((rows.lengths > kept).sum())
        if not num_cut:
            return rows, 0
        values = rows.values[positions(rows.starts, kept)]
        cut = Ragged.of(values, kept)
        # The last id of a cut row stays the closing one.
        is_cut = rows.lengths > kept
        cut.values[cut.offsets[1:][is_cut] - 1] = rows.values[rows.offsets[1:][is_cut] - 1]
        return cut, num_cut


def _kept(
    nearest: Sequence[int], scores: Sequence[float] | None, room: int, costs: Sequence[int]
) -> list[int]:
    """Turns that fit `room` ids. By distance it ends at the first that does not: no hole is left."""
    if scores is not None:
        order = sorted(range(len(nearest)), key=lambda index: -scores[index])  # stable: nearer ones first
        nearest = [nearest[index] for index in order]
    kept = []
    for turn in nearest:
        if costs[turn] <= room:
            kept.append(turn)
            room -= costs[turn]
        elif scores is None:
            break
    return sorted(kept)


def _encode_turns(dialogues: Dialogues, tokenizer: Any, options: ContextOptions) -> Ragged:
    texts = [
        spoken(text, speaker, with_speaker=options.speakers)
        for text, speaker in zip(dialogues.texts, dialogues.speakers, strict=True)
    ]
    behind = closing(tokenizer) or encode(["\n"], tokenizer, special_tokens=False).values.tolist()
    ids = encode(texts, tokenizer, special_tokens=False)
    return side_by_side([ids, same_in_every_row(behind, len(texts))])

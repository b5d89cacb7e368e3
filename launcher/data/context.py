"""An utterance and what was said before it as one row; the utterance itself is never given up for them.

A row is the earlier turns in the order of speaking, then the utterance; or the utterance, then they, as the
two texts of a pair. Each has its speaker's name in front and the tokenizer's closing ids (a line break where
it has none) behind. Turns are whole or absent. They are taken as long as there is room: the nearest first,
or those of the highest score first.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from launcher.data.encode import closing, encode, opening
from launcher.data.examples import Dialogues, Examples
from launcher.data.number_file import NumberWriter, forget
from launcher.data.options import ContextOptions
from launcher.data.overflow import Fitted
from launcher.data.ragged import (
    BLOCK_ROWS,
    Bool,
    Int8,
    Int64,
    Ragged,
    offsets_of,
    positions,
    same_in_every_row,
    side_by_side,
)
from launcher.data.relevance import Scores


def spoken(text: str, speaker: str, *, with_speaker: bool) -> str:
    """An utterance as the model reads it: `Name: text`."""
    return f"{speaker}: {text}" if with_speaker and speaker else text


class Contexts:
    """Rows of dialogues, their context not chosen yet."""

    def __init__(
        self,
        examples: Examples,
        tokenizer: Any,
        options: ContextOptions,
        scores: Scores | None,
        *,
        with_kinds: bool = False,
    ) -> None:
        """Every utterance becomes ids once. `scores`: None keeps the nearest turns.

        `with_kinds`: `fit` gives token types too, where the utterance is the first text of a pair.
        """
        assert examples.dialogues is not None and examples.utterances is not None, "a dialogue layout"
        self.is_first = options.place == "behind"
        self.with_kinds = with_kinds and self.is_first
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
        before = self.turns.offsets
        return before[self.places + 1] - before[self.first] + len(self.opening)

    def fit(self, max_length: int) -> Fitted:
        """Rows of at most `max_length` ids. An utterance that is too long alone loses its end."""
        is_long, kinds, ends = self.lengths > max_length, NumberWriter(np.int8), Counter[str]()

        def parts() -> Iterator[Ragged]:
            for start in range(0, len(self.places), BLOCK_ROWS):
                part = slice(start, start + BLOCK_ROWS)
                rows, num_cut = self._fitted(self.places[part], self.first[part], is_long[part], max_length)
                ends["cut"] += num_cut
                if self.with_kinds:
                    kinds.add(self._kinds(rows, self.places[part]))
                yield rows
                forget(self.turns.values)

        rows = Ragged.join(parts())
        said = "show fewer turns of context" + (
            f", {ends['cut']:,} of them lose their own end" if ends["cut"] else ""
        )
        found = kinds.done() if self.with_kinds else None
        return Fitted(rows=rows, sources=None, num_long=int(is_long.sum()), notice=said, kinds=found)

    def _fitted(self, places: Int64, first: Int64, is_long: Bool, max_length: int) -> tuple[Ragged, int]:
        """Some rows, and how many of them lose their own end."""
        chosen = self._chosen(places.tolist(), first.tolist(), np.flatnonzero(is_long).tolist(), max_length)
        order = np.fromiter((turn for turns in chosen for turn in turns), dtype=np.int64)
        rows = self._rows(order, np.fromiter(map(len, chosen), dtype=np.int64, count=len(chosen)))
        return self._cut(rows, max_length)

    def _kinds(self, rows: Ragged, places: Int64) -> Int8:
        """0 up to the utterance's closing ids, 1 behind them, as of the texts of a pair."""
        firsts = np.minimum(len(self.opening) + self._sizes(places), rows.lengths)
        kinds = np.ones(len(rows.values), dtype=np.int8)
        kinds[positions(rows.starts, firsts)] = 0
        return kinds

    def _sizes(self, turns: Int64) -> Int64:
        """Ids of each of these turns."""
        return self.turns.offsets[turns + 1] - self.turns.offsets[turns]

    def _chosen(
        self, places: list[int], first: list[int], long: list[int], max_length: int
    ) -> list[Sequence[int]]:
        """The turns of every row, its own utterance last, or first. `long`: rows that cannot have all."""
        pairs = zip(first, places, strict=True)
        found = [self._ordered(range(start, place), place) for start, place in pairs]
        asked = [(places[row], list(range(places[row] - 1, first[row] - 1, -1))) for row in long]
        scores = self.scores(asked, self.turns, self.opening) if self.scores else [None] * len(asked)
        for row, (place, nearest), given in zip(long, asked, scores, strict=True):
            own, *costs = self._sizes(np.array([place, *nearest], dtype=np.int64)).tolist()
            room = max_length - len(self.opening) - own
            found[row] = self._ordered(_kept(nearest, given, room, costs), place)
        return found

    def _ordered(self, before: Sequence[int], place: int) -> Sequence[int]:
        if self.is_first:
            return [place, *before]
        return range(before[0], place + 1) if isinstance(before, range) and before else [*before, place]

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
    """Turns that fit `room` ids, each at its cost. By distance it ends at the first that does not fit."""
    order = list(range(len(nearest)))
    if scores is not None:
        order.sort(key=lambda index: -scores[index])  # stable: nearer ones first
    kept = []
    for index in order:
        if costs[index] <= room:
            kept.append(nearest[index])
            room -= costs[index]
        elif scores is None:
            break
    return sorted(kept)


def _encode_turns(dialogues: Dialogues, tokenizer: Any, options: ContextOptions) -> Ragged:
    behind = closing(tokenizer) or encode(["\n"], tokenizer, special_tokens=False).values.tolist()

    def part(start: int) -> Ragged:
        some = slice(start, start + BLOCK_ROWS)
        pairs = zip(dialogues.texts[some], dialogues.speakers[some], strict=True)
        texts = [spoken(text, speaker, with_speaker=options.speakers) for text, speaker in pairs]
        ids = encode(texts, tokenizer, special_tokens=False)
        return side_by_side([ids, same_in_every_row(behind, len(texts))])

    return Ragged.join(map(part, range(0, len(dialogues.texts), BLOCK_ROWS)))

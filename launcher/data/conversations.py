"""Conversations as rows of ids, of which the assistant's turns and their ends are trained."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from launcher.data.encode import encode
from launcher.data.examples import Examples, Turn
from launcher.data.ragged import Bool, Int64, Ragged
from launcher.data.spans import Piece, Unstable, pieces_of
from launcher.data.templates import template_text
from launcher.errors import DataError, Problem


class Talks:
    """Every conversation rendered and encoded. One that is too long loses its oldest exchanges whole."""

    def __init__(self, examples: Examples, tokenizer: Any, name: str, end: int) -> None:
        """`name` as `templates.choose` gives it, `end` the id that ends an answer."""
        assert examples.turns is not None, "rows of a conversation layout"
        self.examples, self.tokenizer, self.name, self.end = examples, tokenizer, name, end
        self.turns = list(examples.turns)
        self.rows = [self._render(row) for row in range(len(examples))]
        self.num_shortened = 0

    def _render(self, row: int) -> list[Piece]:
        tools = self.examples.tools[row] if self.examples.tools else ""
        try:
            return pieces_of(self.turns[row], tools, self.tokenizer, self.name)
        except Unstable as error:
            raise DataError(self._unstable(row, error)) from None
        except Exception as error:  # templates raise Jinja's errors, and whatever they meet
            raise DataError(self._refused(row, error)) from None

    def fit(self, max_length: int) -> tuple[Ragged, Bool]:
        """Ids and trained marks of all rows: empty without an answer, and some may still be too long."""
        rows, trained = self._encoded(range(len(self.rows)))
        long = np.flatnonzero(rows.lengths > max_length).tolist()
        shortened: set[int] = set()
        while long:
            shorter = [row for row in long if self._shorten(row)]
            if not shorter:
                break
            shortened.update(shorter)
            lengths = self._encoded(shorter)[0].lengths
            long = [row for row, length in zip(shorter, lengths.tolist(), strict=True) if length > max_length]
        self.num_shortened = len(shortened)
        return self._encoded(range(len(self.rows))) if shortened else (rows, trained)

    def _shorten(self, row: int) -> bool:
        """Leave out the oldest exchange behind the system's turns, if an answer stays."""
        turns = self.turns[row]
        start = next((place for place, turn in enumerate(turns) if turn.role != "system"), len(turns))
        next_question = next(
            (place for place in range(start + 1, len(turns)) if turns[place].role == "user"), len(turns)
        )
        rest = (*turns[:start], *turns[next_question:])
        if not any(turn.role == "assistant" and turn.trained is not False for turn in rest):
            return False
        self.turns[row] = rest
        self.rows[row] = self._render(row)
        return True

    def _encoded(self, rows: Sequence[int]) -> tuple[Ragged, Bool]:
        pieces = [piece for row in rows for piece in self.rows[row]]
        ids = encode([piece.text for piece in pieces], self.tokenizer, special_tokens=False)
        marks = np.repeat(np.array([piece.trained for piece in pieces], dtype=np.bool_), ids.lengths)
        counts = np.array([len(self.rows[row]) for row in rows], dtype=np.int64)
        firsts = np.concatenate([[0], np.cumsum(counts)])
        joined = Ragged(values=ids.values, offsets=ids.offsets[firsts])
        return self._ended(joined, marks)

    def _ended(self, rows: Ragged, marks: Bool) -> tuple[Ragged, Bool]:
        """The end token behind the last answer, where the template's own end of turn does not hold it."""
        if not len(rows.values):  # no row has an answer
            return rows, marks
        lasts = rows.offsets[1:] - 1
        bare = np.flatnonzero((rows.lengths > 0) & (rows.values[np.maximum(lasts, 0)] != self.end))
        places = rows.offsets[bare + 1]
        values = np.insert(rows.values, places, self.end)
        marks = np.insert(marks, places, marks[places - 1])
        added = np.zeros(len(rows.lengths), dtype=np.int64)
        added[bare] = 1
        return Ragged.of(values.astype(np.int32), rows.lengths + added), marks

    def num_trained(self, rows: Ragged, marks: Bool) -> Int64:
        """Trained ids of each row."""
        before = np.concatenate([[0], np.cumsum(marks, dtype=np.int64)])
        counted: Int64 = before[rows.offsets[1:]] - before[rows.offsets[:-1]]
        return counted

    def notices(self) -> Iterator[str]:
        """What the template has no place for."""
        name, written = self.examples.path.name, template_text(self.tokenizer, self.name)
        if any(self.examples.tools or ()) and "tools" not in written:
            yield f"{name}: the {self.name} template has no place for tools: they are left out"
        if any(turn.reasoning for turns in self.turns for turn in turns) and "reasoning" not in written:
            yield f"{name}: the {self.name} template has no place for reasoning: it is left out"

    def _unstable(self, row: int, error: Unstable) -> Problem:
        return Problem(
            where=self.examples.where(row),
            what=f"the model's chat template rewrites earlier turns when others follow: {error}; what is "
            "trained would not be what the model is asked later",
            right="a template that only appends",
            type="data.template=chatml, or conversations of one question and answer",
        )

    def _refused(self, row: int, error: Exception) -> Problem:
        roles = ", ".join(turn.role for turn in self._turns(row))
        return Problem(
            where=self.examples.where(row),
            what=f"the chat template refuses this conversation ({roles}): {str(error).splitlines()[:1]}",
            right="roles in an order that the template knows, mostly user and assistant in turn",
            type="data.template=chatml, or mend that record",
        )

    def _turns(self, row: int) -> tuple[Turn, ...]:
        return self.turns[row]

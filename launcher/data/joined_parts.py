"""Rows of prompts and answers made part by part, and what is to be said of all parts together."""

from dataclasses import dataclass

import numpy as np

from launcher.data.examples import Examples
from launcher.data.ragged import Bool, Int64, Ragged
from launcher.errors import DataError, Problem


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some rows joined. `fits`: those that keep an answer, the others are left out.

    `needed`: ids that the longest answer needs. `num_cut`: prompts that lost their beginning,
    `num_ends_cut`: answers that lost their end. `num_marks`: completions that ended in a mark.
    """

    rows: Ragged
    trained: Bool
    fits: Int64
    needed: int
    num_cut: int
    num_ends_cut: int = 0
    num_marks: int = 0
    said: tuple[str, ...] = ()


class Told:
    """What is to be said of all parts together."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.num_rows = self.num_cut = self.num_ends_cut = self.num_marks = self.num_lost = self.needed = 0
        self.first_lost = 0
        self.said = dict[str, None]()

    def add(self, part: Part, num_rows: int) -> None:
        """The next part, which was made of so many rows."""
        if len(part.fits) < num_rows:
            if not self.num_lost:
                inside = np.ones(num_rows, dtype=np.bool_)
                inside[part.fits] = False
                self.first_lost = self.num_rows + int(np.flatnonzero(inside)[0])
            self.num_lost += num_rows - len(part.fits)
        self.num_rows += num_rows
        self.num_cut += part.num_cut
        self.num_ends_cut += part.num_ends_cut
        self.num_marks += part.num_marks
        self.needed = max(self.needed, part.needed)
        self.said.update(dict.fromkeys(part.said))

    def notices(self, examples: Examples) -> tuple[str, ...]:
        """What was taken off, and what the template has no place for."""
        name, lines = examples.path.name, list[str]()
        if self.num_marks:
            said = f"{name}: {self.num_marks:,} completions end in a mark such as <|endoftext|>: "
            lines.append(f"{said}the tokenizer's end token stands in its place")
        if self.num_ends_cut:
            said = (
                f"{name}: {self.num_ends_cut:,} of {self.num_rows:,} rows are evaluated on the beginning of "
            )
            lines.append(f"{said}their answer: all of it does not fit")
        return (*lines, *self.said)

    def lost(self, examples: Examples, max_length: int, most_lost: float) -> tuple[str, ...]:
        """A line on rows without an answer. Raises DataError where they are too many."""
        if not self.num_lost:
            return ()
        where, line = examples.where(self.first_lost), examples.lines[self.first_lost]
        said = f"{self.num_lost:,} of {self.num_rows:,} rows have an answer that does not fit max_length "
        said += str(max_length)
        if examples.turns is not None:
            said = said.replace("have", "have no answer, or", 1)
        if self.num_lost > most_lost * self.num_rows or self.num_lost == self.num_rows:
            raise DataError(
                Problem(
                    where=where,
                    what=f"{said} (this is the first)",
                    right=f"at most {most_lost:.1%} of the rows may be lost (data.max_lost_fraction): "
                    "they would train nothing",
                    type=f"data.max_length={self.needed} (the longest answer's need), or shorter answers in "
                    "the file",
                )
            )
        return (f"{examples.path.name}: {said} and are left out (first at line {line:,})",)

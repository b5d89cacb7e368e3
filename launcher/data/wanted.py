"""How rows are to become tokens: what the recipe, the model and the training rows say of it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from launcher.data.answers import Joined, join_answers
from launcher.data.examples import Examples
from launcher.data.lengths import Length, choose_length
from launcher.data.options import DataOptions, Overflow
from launcher.data.ragged import Int64
from launcher.data.relevance import Scores
from launcher.errors import BadValue, Problem


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """`length` is set for evaluation rows: the training rows' choice.

    `has_token_types`: the model tells the two texts of a pair apart by them.
    """

    tokenizer: Any
    options: DataOptions
    template: str
    limit: int | None
    length: Length | None
    scores: Scores | None
    has_token_types: bool

    @property
    def overflow(self) -> Overflow:
        """Rows to evaluate on are never left out: a metric without the hard rows would flatter."""
        policy = self.options.overflow
        return "auto" if policy == "drop" and self.length is not None else policy

    def length_for(self, whole: Int64) -> Length:
        """The length for rows that have `whole` tokens uncut."""
        return self.length or choose_length(self.options.max_length, whole, self.limit)

    def joined(self, examples: Examples, max_length: int) -> Joined:
        """Prompts and answers as rows, cut to a length."""
        return join_answers(
            examples,
            self.tokenizer,
            self.template,
            max_length,
            train_on=self.options.train_on,
            most_lost=self.options.max_lost_fraction,
            cut_answers=self.options.overflow == "drop" and self.length is not None,
        )

    def first_length(self) -> Length:
        """The length where the rows themselves cannot tell it; a percentile gives its cap."""
        return self.length or choose_length(self.options.max_length, np.zeros(0, dtype=np.int64), self.limit)


def require(policy: Overflow, known: tuple[Overflow, ...], why: str) -> None:
    """Raise BadValue for an overflow policy that rows cannot have; `why` says what they are."""
    if policy not in known:
        raise BadValue(
            Problem(
                where="data.overflow",
                what=f"{policy} does not go with {why}",
                right=" or ".join(known),
                type=f"data.overflow={known[0]}",
            )
        )


def long_notice(examples: Examples, num_long: int, max_length: int, what: str) -> tuple[str, ...]:
    """What became of rows that were too long, in a line."""
    if not num_long:
        return ()
    share = num_long / len(examples)
    return (
        f"{examples.path.name}: {num_long:,} of {len(examples):,} rows ({share:.1%}) are longer than "
        f"max_length {max_length} and {what}",
    )

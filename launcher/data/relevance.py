"""Which earlier turns matter to an utterance: a score for each, by which those of one row are ordered.

Equal scores leave the nearer turn in front. The score here is plain arithmetic on words.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from launcher.data.examples import Dialogues
from launcher.data.ragged import Ragged

# A row that needs scores: the place of its utterance, and those of the earlier turns, the nearest first.
Asked = tuple[int, Sequence[int]]
# (rows, ids of every turn, ids in front of a row) -> for each row a score a turn; higher is kept first.
Scores = Callable[[Sequence[Asked], Ragged, Sequence[int]], list[Sequence[float]]]
_VECTORS_HELD = 4096
_WORD = re.compile(r"\w+")


def words(text: str) -> Counter[str]:
    """Lower-case words and how often each occurs."""
    return Counter(_WORD.findall(text.lower()))


class TfIdf:
    """Cosine of the tf-idf vectors of a turn and the utterance.

    With N utterances, of which n_w have the word w: idf(w) = ln((1 + N) / (1 + n_w)) + 1, weight of w in a
    text = count(w) * idf(w), score = sum over shared words of both weights / (norm of one * norm of other).
    The utterances are those of the same file, their labels are not looked at.
    """

    def __init__(self, dialogues: Dialogues) -> None:
        """Count words once for all utterances."""
        seen, total = Counter[str](), len(dialogues.texts)
        for text in dialogues.texts:
            seen.update(words(text).keys())
        self.idf = {word: math.log((1 + total) / (1 + number)) + 1 for word, number in seen.items()}
        self.texts = dialogues.texts
        self._vector = lru_cache(_VECTORS_HELD)(self._made)

    def _made(self, place: int) -> tuple[dict[str, float], float]:
        """An utterance's weights by word, and the norm of their vector."""
        weights = {word: count * self.idf[word] for word, count in words(self.texts[place]).items()}
        return weights, math.sqrt(sum(weight**2 for weight in weights.values()))

    def __call__(self, rows: Sequence[Asked], turns: Ragged, opening: Sequence[int]) -> list[Sequence[float]]:
        """The scores of all rows; ids are not looked at."""
        return [[self.score(place, turn) for turn in before] for place, before in rows]

    def score(self, left: int, right: int) -> float:
        """Cosine of two utterances' vectors."""
        (one, length), (other, other_length) = self._vector(left), self._vector(right)
        norms = length * other_length
        return sum(weight * other.get(word, 0.0) for word, weight in one.items()) / norms if norms else 0.0

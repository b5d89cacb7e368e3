"""Which earlier turns matter to an utterance: a score for each, by which those of one row are ordered.

Equal scores leave the nearer turn in front. The score here is plain arithmetic on words.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from launcher.data.examples import Dialogues
from launcher.data.ragged import Ragged

# A row that needs scores: the place of its utterance, and those of the earlier turns, the nearest first.
Asked = tuple[int, Sequence[int]]
# (rows, ids of every turn, ids in front of a row) -> for each row a score a turn; higher is kept first.
Scores = Callable[[Sequence[Asked], Ragged, Sequence[int]], list[Sequence[float]]]
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
        counts = [words(text) for text in dialogues.texts]
        seen = Counter(word for count in counts for word in count)
        total = len(counts)
        idf = {word: math.log((1 + total) / (1 + number)) + 1 for word, number in seen.items()}
        self.weights = [{word: count * idf[word] for word, count in each.items()} for each in counts]
        self.norms = [math.sqrt(sum(weight**2 for weight in each.values())) for each in self.weights]

    def __call__(self, rows: Sequence[Asked], turns: Ragged, opening: Sequence[int]) -> list[Sequence[float]]:
        """The scores of all rows; ids are not looked at."""
        return [[self.score(place, turn) for turn in before] for place, before in rows]

    def score(self, left: int, right: int) -> float:
        """Cosine of two utterances' vectors."""
        one, other = self.weights[left], self.weights[right]
        norms = self.norms[left] * self.norms[right]
        return sum(weight * other.get(word, 0.0) for word, weight in one.items()) / norms if norms else 0.0

"""Which earlier turns matter to an utterance: scores that are plain arithmetic on words.

A score only orders the turns of one row. Equal scores leave the nearer turn in front.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from launcher.data.examples import Dialogues

# (place of the utterance, places of earlier turns) -> a score for each of them; higher is kept first.
Scores = Callable[[int, Sequence[int]], Sequence[float]]
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

    def __call__(self, place: int, turns: Sequence[int]) -> list[float]:
        """The score of each turn for the utterance at `place`."""
        return [self._cosine(place, turn) for turn in turns]

    def _cosine(self, left: int, right: int) -> float:
        one, other = self.weights[left], self.weights[right]
        norms = self.norms[left] * self.norms[right]
        return sum(weight * other.get(word, 0.0) for word, weight in one.items()) / norms if norms else 0.0

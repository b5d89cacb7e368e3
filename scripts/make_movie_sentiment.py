r"""Make `recipes/data/movie_sentiment` again from the movie snippets of the vaderSentiment sdist.

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2 && tar xf vaderSentiment-3.3.2.tar.gz
    tar xf vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz
    python scripts/make_movie_sentiment.py hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt \
        recipes/data/movie_sentiment

Needs scikit-learn (the `dev` extra). The result is the same bytes every time; a test checks its properties.
"""

import csv
import html
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

SEED = 2002
LEAST_RATING = 1.0  # lukewarm snippets, nearer to zero than this, are left out
MOST_ALIKE = 0.6  # cosine of character 4-gram counts
TRAIN_ROWS, EVAL_ROWS = 4000, 2000
LABELS = ("negative", "positive")

Row = tuple[str, str]


def main(arguments: Sequence[str]) -> None:
    """Read the snippets named first, write both files into the folder named second."""
    source, folder = map(Path, arguments)
    rows = list(read_rows(source))
    random.Random(SEED).shuffle(rows)
    train, evaluation = split(without_near_duplicates(rows))
    write(folder / "train.csv", train)
    write(folder / "eval.csv", evaluation)
    print(f"{len(rows)} clear snippets: {len(train)} to train on, {len(evaluation)} to evaluate on")


def read_rows(source: Path) -> Iterator[Row]:
    """Text and label of every snippet with a clear rating (the file is id, mean rating, text)."""
    for line in source.read_text(encoding="utf-8").splitlines():
        _, rating, text = line.split("\t")
        if abs(float(rating)) >= LEAST_RATING:
            yield " ".join(html.unescape(text).split()), LABELS[float(rating) > 0]


def without_near_duplicates(rows: list[Row]) -> list[Row]:
    """The rows in order, each left out that is too much like an earlier one."""
    alike = similarity([text for text, _ in rows])
    dropped: set[int] = set()
    for first, second in zip(*np.nonzero(np.triu(alike > MOST_ALIKE, k=1)), strict=True):
        if first not in dropped:
            dropped.add(int(second))
    return [row for index, row in enumerate(rows) if index not in dropped]


def similarity(texts: list[str], others: list[str] | None = None) -> np.ndarray:
    """Cosine of character 4-gram counts, case ignored, of every text with every other: [rows, rows]."""
    counter = CountVectorizer(analyzer="char", ngram_range=(4, 4), dtype=np.float32)
    ours = normalize(counter.fit_transform(texts + (others or [])))
    theirs = ours[len(texts) :] if others else ours
    return (ours[: len(texts)] @ theirs.T).toarray()


def split(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Train and evaluation rows, with as many of the one label as of the other in each."""
    half_train, half_eval = TRAIN_ROWS // 2, EVAL_ROWS // 2
    train, evaluation, seen = [], [], dict.fromkeys(LABELS, 0)
    for row in rows:
        seen[row[1]] += 1
        if seen[row[1]] <= half_train:
            train.append(row)
        elif seen[row[1]] <= half_train + half_eval:
            evaluation.append(row)
    return train, evaluation


def write(path: Path, rows: list[Row]) -> None:
    """A csv file with a header and Unix line ends."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("text", "label"))
        writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The same row twice: inside a file, and on both sides of training and evaluation."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from launcher.data.examples import Examples
from launcher.data.findings import excerpt
from launcher.data.ragged import Float32, Int32, Int64
from launcher.errors import DataError, Problem

SHORTEST = 20
_MIX = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Prints:
    """What makes a row the same as another: 64 bits of a hash of its texts or turns, and its label's number.

    White space at the ends of texts does not count. `sizes`: characters. Of a million different rows two
    have the same hash once in thirty million such files.
    """

    hashes: Hashes
    sizes: Int32
    labels: Int64 | None

    def take(self, rows: Int64) -> "Prints":
        """Those rows only."""
        labels = None if self.labels is None else self.labels[rows]
        return Prints(hashes=self.hashes[rows], sizes=self.sizes[rows], labels=labels)

    @property
    def labelled(self) -> Hashes:
        """Hashes of texts and label together."""
        if self.labels is None:
            return self.hashes
        return self.hashes + (self.labels.astype(np.uint64) + np.uint64(1)) * _MIX


def prints_of(examples: Examples) -> Prints:
    """One look at every row."""
    hashes, sizes = array("Q"), array("i")
    for block in examples.blocks():
        for content, size in _contents(block):
            packed = content.encode("utf-8", "surrogatepass")
            hashes.append(int.from_bytes(blake2b(packed, digest_size=8).digest()))
            sizes.append(size)
    return Prints(
        hashes=np.array(hashes, dtype=np.uint64),
        sizes=np.array(sizes, dtype=np.int32),
        labels=None if examples.labels is None else _numbered(examples.labels),
    )


def _contents(examples: Examples) -> Iterator[tuple[str, int]]:
    """Texts or turns as one, and its characters."""
    if examples.turns is not None:
        for turns in examples.turns:
            said = "\1".join(f"{turn.role}\0{turn.text.strip()}\0{turn.calls or ''}" for turn in turns)
            yield said, len(said)
        return
    columns = [column for role, column in examples.texts.items() if role != "speaker"]
    for texts in zip(*columns, strict=True):
        stripped = [text.strip() for text in texts]
        yield "\1".join(stripped), sum(map(len, stripped))


def _numbered(labels: Int64 | Float32) -> Int64:
    """Every label as a number, the same for equal ones."""
    if labels.dtype == np.int64:
        return labels.astype(np.int64)
    if labels.ndim == 1:
        return labels.astype(np.float32).view(np.int32).astype(np.int64)
    return np.asarray(np.unique(labels, axis=0, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def distinct(prints: Prints) -> Int64:
    """The rows without repetitions: the first of each, in order."""
    return np.sort(np.unique(prints.labelled, return_index=True)[1]).astype(np.int64)


def num_repeated(prints: Prints) -> int:
    """Rows that another row before them already is, text and label."""
    return len(prints.hashes) - len(np.unique(prints.labelled))


def contradicted(prints: Prints) -> Int64:
    """Rows whose text stands before them with another label."""
    if prints.labels is None:
        return np.zeros(0, dtype=np.int64)
    _, firsts, members = np.unique(prints.hashes, return_index=True, return_inverse=True)
    return np.flatnonzero(prints.labels != prints.labels[firsts][members]).astype(np.int64)


def leaked(train: Prints, evaluation: Prints) -> tuple[Int64, Int64]:
    """(evaluation rows, their training rows) of equal texts; those of under 20 characters meet by chance."""
    known, firsts = np.unique(train.hashes, return_index=True)
    places = np.minimum(np.searchsorted(known, evaluation.hashes), max(0, len(known) - 1))
    same = (known[places] == evaluation.hashes) & (evaluation.sizes >= SHORTEST)
    rows = np.flatnonzero(same).astype(np.int64)
    return rows, firsts[places[rows]].astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Side:
    """Rows and their prints."""

    examples: Examples
    prints: Prints

    def take(self, rows: Int64) -> "Side":
        """Those rows only."""
        return Side(examples=self.examples.take(rows), prints=self.prints.take(rows))


def check_leaks(train: Side, held_out: Side, most: float) -> tuple[str, ...]:
    """A notice of how many evaluation rows are trained on. Raises DataError above the share `most`."""
    rows, sources = leaked(train.prints, held_out.prints)
    if not len(rows):
        return ()
    evaluation = held_out.examples
    share = len(rows) / len(evaluation)
    said = f"{len(rows):,} of {len(evaluation):,} evaluation rows ({share:.1%}) are trained on too"
    row, source = int(rows[0]), int(sources[0])
    first = f"{evaluation.where(row)} is {train.examples.where(source)}: {excerpt(_shown(evaluation, row))}"
    if len(rows) <= (max(1.0, most * len(evaluation)) if most else 0):  # one may be chance
        return (f"{said} (first: {first})",)
    raise DataError(
        Problem(
            where=evaluation.where(row),
            what=f"{said}: the metric would measure memory; first: {first}",
            right=f"at most {most:.1%} of the rows (data.max_leaked_fraction)",
            type="data.drop_duplicates=true if the file repeats its rows, another evaluation file, "
            f"or data.max_leaked_fraction={min(1.0, share + 0.001):.3f} if it must be",
        )
    )


def _shown(examples: Examples, row: int) -> str:
    if examples.turns:
        return next((turn.text for turn in examples.turns[row]), "")
    return next((column[row] for column in examples.texts.values() if column[row]), "")

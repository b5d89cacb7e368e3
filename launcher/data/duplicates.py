"""The same row twice: inside a file, and on both sides of training and evaluation."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from launcher.data.examples import Examples
from launcher.data.findings import excerpt
from launcher.data.number_file import NumberWriter
from launcher.data.ragged import Bool, Float32, Int64
from launcher.errors import DataError, Problem

SHORTEST = 20
_AT_ONCE = 2**16
_MIX = np.uint64(0x9E3779B97F4A7C15)
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class Prints:
    """What makes a row the same as another: 64 bits of a hash of its texts or turns, and its label's number.

    White space at the ends of texts does not count. `sizes`: characters, 255 for more. Of a million
    different rows two have the same hash once in thirty million such files.
    """

    hashes: Hashes
    sizes: npt.NDArray[np.uint8]
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
    hashes, sizes = NumberWriter(np.uint64), NumberWriter(np.uint8)
    for block in examples.blocks():
        found = [
            (int.from_bytes(blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()), size)
            for content, size in _contents(block)
        ]
        hashes.add(np.array([each for each, _ in found], dtype=np.uint64))
        sizes.add(np.array([min(size, 255) for _, size in found], dtype=np.uint8))
    labels = examples.labels
    return Prints(
        hashes=hashes.done(), sizes=sizes.done(), labels=None if labels is None else _numbered(labels)
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
        return np.asarray(labels, dtype=np.int64)
    if labels.ndim == 1:
        return labels.astype(np.float32).view(np.int32).astype(np.int64)
    return np.asarray(np.unique(labels, axis=0, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def shared(prints: Prints) -> Int64:
    """The rows whose text another row has too, in order: few in most files, so that they cost little."""
    ordered = np.sort(prints.hashes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if not len(twice):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(_are_in(twice, prints.hashes)).astype(np.int64)


def _are_in(known: Hashes, hashes: Hashes) -> Bool:
    """Whether each hash is one of the known, which are sorted; in blocks, for the places take more memory."""
    found = np.zeros(len(hashes), dtype=np.bool_)
    for start in range(0, len(hashes) if len(known) else 0, _AT_ONCE):
        part = hashes[start : start + _AT_ONCE]
        places = np.minimum(np.searchsorted(known, part), len(known) - 1)
        found[start : start + _AT_ONCE] = known[places] == part
    return found


def repeated(prints: Prints) -> Int64:
    """The rows that another row before them already is, text and label, in order."""
    rows = shared(prints)
    firsts = np.unique(prints.take(rows).labelled, return_index=True)[1]
    is_first = np.zeros(len(rows), dtype=np.bool_)
    is_first[firsts] = True
    later: Int64 = rows[~is_first]
    return later


def distinct(prints: Prints) -> Int64:
    """The rows without repetitions: the first of each, in order."""
    stays = np.ones(len(prints.hashes), dtype=np.bool_)
    stays[repeated(prints)] = False
    return np.flatnonzero(stays).astype(np.int64)


def contradicted(prints: Prints) -> Int64:
    """Rows whose text stands before them with another label."""
    rows = shared(prints)
    some = prints.take(rows)
    if some.labels is None:
        return rows[:0]
    _, firsts, members = np.unique(some.hashes, return_index=True, return_inverse=True)
    against: Int64 = rows[some.labels != some.labels[firsts][members]]
    return against


def leaked(train: Prints, evaluation: Prints) -> Int64:
    """Evaluation rows that are training rows; texts of under 20 characters meet by chance."""
    same = _are_in(np.sort(train.hashes), evaluation.hashes) & (evaluation.sizes >= SHORTEST)
    return np.flatnonzero(same).astype(np.int64)


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
    rows = leaked(train.prints, held_out.prints)
    if not len(rows):
        return ()
    evaluation = held_out.examples
    share = len(rows) / len(evaluation)
    said = f"{len(rows):,} of {len(evaluation):,} evaluation rows ({share:.1%}) are trained on too"
    row = int(rows[0])
    source = int(np.argmax(train.prints.hashes == held_out.prints.hashes[row]))
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

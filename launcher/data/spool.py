"""Rows kept in a file instead of in memory: as many as there are, for the memory of a few.

Few rows never leave memory: then what comes back is a list.
"""

import marshal
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from launcher.data.scratch import Scratch

T = TypeVar("T")
S = TypeVar("S")

BLOCK_ROWS, BLOCK_SIZE = 1024, 2**22
HELD_BYTES = 2**23
_ITEM_BYTES = 300  # of a row beside its texts


class Spool(Sequence[T], Generic[T]):
    """Items in blocks, one of which is in memory."""

    def __init__(
        self, file: Scratch, starts: "array[int]", ends: "array[int]", held: dict[int, list[T]]
    ) -> None:
        """`starts`: the first item of each block, and the number of all; `ends`: of its bytes in the file.

        `held`: blocks that only memory can hold.
        """
        self._file, self._starts, self._ends, self._held = file, starts, ends, held
        self._number, self._block = -1, list[T]()

    def __len__(self) -> int:
        """Items."""
        return self._starts[-1]

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        """One item, or a list of several."""
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            return (
                self._between(start, stop) if step == 1 else [self[each] for each in range(start, stop, step)]
            )
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(place)
        number = self._number
        if number < 0 or not self._starts[number] <= place < self._starts[number + 1]:
            number = bisect_right(self._starts, place) - 1
        return self._read(number)[place - self._starts[number]]

    def _between(self, start: int, stop: int) -> list[T]:
        found = list[T]()
        number = bisect_right(self._starts, start) - 1
        while start < stop:
            first, end = self._starts[number], min(stop, self._starts[number + 1])
            found += self._read(number)[start - first : end - first]
            start, number = end, number + 1
        return found

    def __iter__(self) -> Iterator[T]:
        """All items, a block at a time."""
        for block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[list[T]]:
        """All items in lists."""
        for number in range(len(self._ends)):
            yield self._read(number)

    def _read(self, number: int) -> list[T]:
        if number != self._number:
            self._block, self._number = self._held.get(number) or self._load(number), number
        return self._block

    def _load(self, number: int) -> list[T]:
        start = self._ends[number - 1] if number else 0
        block: list[T] = marshal.loads(os.pread(self._file.fileno(), self._ends[number] - start, start))
        return block


class SpoolWriter(Generic[T]):
    """Takes items one after another; gives them back as a sequence."""

    def __init__(self) -> None:
        """Nothing is written before there is much."""
        self._pending = list[T]()
        self._size = 0
        self._blocks = list[list[T]]()  # as long as all is in memory
        self._packed = 0
        self._file: Scratch | None = None
        self._starts, self._ends = array("q", [0]), array("q")
        self._held = dict[int, list[T]]()

    def __len__(self) -> int:
        """Items so far."""
        return self._starts[-1] + len(self._pending)

    def add(self, item: T, size: int) -> None:
        """One more; `size` is about how many bytes it takes."""
        self._pending.append(item)
        self._size += size
        if len(self._pending) >= BLOCK_ROWS or self._size >= BLOCK_SIZE:
            self._flush()

    def extend(self, items: Iterable[T], size: int) -> None:
        """Several at once, of about `size` bytes together."""
        self._pending.extend(items)
        self._size += size
        if len(self._pending) >= BLOCK_ROWS or self._size >= BLOCK_SIZE:
            self._flush()

    def done(self) -> Sequence[T]:
        """All items: a list where they are few."""
        if self._file is None:
            return [item for block in (*self._blocks, self._pending) for item in block]
        self._flush()
        return Spool(self._file, self._starts, self._ends, self._held)

    def _flush(self) -> None:
        block, self._pending = self._pending, []
        if not block:
            return
        self._packed += self._size + _ITEM_BYTES * len(block)
        self._size = 0
        self._starts.append(self._starts[-1] + len(block))
        if self._file is not None:
            self._write(block)
            return
        self._blocks.append(block)
        if self._packed > HELD_BYTES:
            self._file = Scratch()
            for each in self._blocks:
                self._write(each)
            self._blocks = []

    def _write(self, block: list[T]) -> None:
        assert self._file is not None
        end = self._ends[-1] if self._ends else 0
        try:
            packed = marshal.dumps(block)
        except ValueError:  # dates and the like, which some parquet columns hold
            self._held[len(self._ends)] = block
            packed = b""
        self._file.write(packed)
        self._ends.append(end + len(packed))


class Viewed(Sequence[S], Generic[T, S]):
    """Every item of a sequence as something else, made anew at each look."""

    def __init__(self, items: Sequence[T], change: Callable[[T], S]) -> None:
        """`change` gives what is seen of an item."""
        self.items, self.change = items, change

    def __len__(self) -> int:
        """Items."""
        return len(self.items)

    @overload
    def __getitem__(self, place: int) -> S: ...

    @overload
    def __getitem__(self, place: slice) -> list[S]: ...

    def __getitem__(self, place: int | slice) -> S | list[S]:
        """One item, or a list of several."""
        if isinstance(place, slice):
            return list(map(self.change, self.items[place]))
        return self.change(self.items[place])


def viewed(items: Sequence[T], change: Callable[[T], S]) -> Sequence[S]:
    """`change` of every item: at once where they are a list."""
    return list(map(change, items)) if isinstance(items, list) else Viewed(items, change)


def blocks_of(items: Sequence[T]) -> Iterator[list[T]]:
    """All items in lists of a block."""
    if isinstance(items, Spool):
        yield from items.blocks()
        return
    for start in range(0, len(items), BLOCK_ROWS):
        yield list(items[start : start + BLOCK_ROWS])


def mapped(items: Sequence[T], change: Callable[[int, T], S]) -> Sequence[S]:
    """`change(number, item)` of every item, kept as the items are."""
    if isinstance(items, list):
        return [change(number, item) for number, item in enumerate(items)]
    writer = SpoolWriter[S]()
    for number, item in enumerate(items):
        writer.add(change(number, item), size_of(item))
    return writer.done()


def size_of(value: Any) -> int:
    """About how many bytes a value of texts takes; rows of tables are known by their texts."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(each) for each in value.values())
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 8

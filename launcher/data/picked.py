"""Some of a sequence's items under new numbers, without a copy where there are many."""

from array import array
from collections.abc import Sequence
from typing import Generic, TypeVar, overload

from launcher.data.ragged import Int64

T = TypeVar("T")


class Picked(Sequence[T], Generic[T]):
    """The items at `index` of a sequence. Looking them up in order reads each block of a spool once."""

    def __init__(self, items: Sequence[T], index: Int64) -> None:
        """`index`: int64, best in rising order."""
        self.items, self.places = items, index

    def __len__(self) -> int:
        """Items."""
        return len(self.places)

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        """One item, or a list of several."""
        if isinstance(place, slice):
            return [self.items[each] for each in self.places[place].tolist()]
        return self.items[int(self.places[place])]


def pick(items: Sequence[T], index: Int64) -> Sequence[T]:
    """Those items: a list of a list, a view of anything else."""
    if isinstance(items, list):
        return [items[place] for place in index.tolist()]
    if isinstance(items, array):
        return array(items.typecode, [items[place] for place in index.tolist()])
    if isinstance(items, Picked):
        return Picked(items.items, items.places[index])
    return Picked(items, index)

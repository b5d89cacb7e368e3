"""A sequence in which the same item stands many times one after another, such as the file of each row."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class Runs(Sequence[T], Generic[T]):
    """`items`, each of which stands for the places up to its end."""

    def __init__(self) -> None:
        """Empty."""
        self.items, self.ends = list[T](), array("q")

    def add(self, item: T, number: int) -> None:
        """`number` times that item, behind the others."""
        self.items.append(item)
        self.ends.append(len(self) + number)

    def __len__(self) -> int:
        """Places."""
        return self.ends[-1] if self.ends else 0

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        """The item at a place, or a list of several."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self.items[bisect_right(self.ends, place % len(self))]

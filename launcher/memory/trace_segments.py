"""A model of the CUDA caching allocator's segments: what a log's allocations make it reserve. No torch.

Source: c10/cuda/CUDACachingAllocator.cpp (torch 2.0 to 2.13): requests up to 1 MiB come from segments of
2 MiB; up to 10 MiB from segments of 20 MiB; larger ones get a segment of their own, rounded to 2 MiB. Best
fit; a block is split where at least 512 B (small) or more than 1 MiB (large) remain; neighbours that are
free are merged. Segments are never given back. One stream is assumed.
"""

import bisect
from dataclasses import dataclass

from launcher.memory.trace_log import TraceLog, rounded

MIB = 1 << 20
SMALL_REQUEST, SMALL_SEGMENT = MIB, 2 * MIB
LARGE_SEGMENT, OWN_SEGMENT, OWN_ROUNDING = 20 * MIB, 10 * MIB, 2 * MIB


@dataclass(kw_only=True, eq=False)
class _Block:
    """A piece of a segment, linked to its neighbours."""

    size: int
    is_free: bool = True
    before: "_Block | None" = None
    after: "_Block | None" = None


class CachingAllocator:
    """Two pools of segments. `reserved_bytes` only grows."""

    def __init__(self) -> None:
        self.reserved_bytes = 0
        self._free: dict[bool, list[tuple[int, int, _Block]]] = {True: [], False: []}
        self._live: dict[int, tuple[_Block, bool]] = {}
        self._count = 0

    def allocate(self, number: int, num_bytes: int) -> None:
        """Serve a request (already rounded to 512 B) under a number of the caller's."""
        is_small = num_bytes <= SMALL_REQUEST
        block = self._take(num_bytes, is_small) or self._new_segment(num_bytes, is_small)
        rest = block.size - num_bytes
        if rest >= 512 if is_small else rest > SMALL_REQUEST:
            self._split(block, num_bytes, is_small)
        block.is_free = False
        self._live[number] = (block, is_small)

    def free(self, number: int) -> None:
        """Give a request's block back to its pool, merged with free neighbours."""
        block, is_small = self._live.pop(number)
        block.is_free = True
        for other in (block.before, block.after):
            if other is not None and other.is_free:
                self._drop(other, is_small)
                self._merge(block, other)
        self._keep(block, is_small)

    def _take(self, num_bytes: int, is_small: bool) -> _Block | None:
        pool = self._free[is_small]
        place = bisect.bisect_left(pool, num_bytes, key=lambda entry: entry[0])
        return pool.pop(place)[2] if place < len(pool) else None

    def _new_segment(self, num_bytes: int, is_small: bool) -> _Block:
        size = SMALL_SEGMENT if is_small else LARGE_SEGMENT
        if num_bytes >= OWN_SEGMENT:
            size = rounded(num_bytes, OWN_ROUNDING)
        self.reserved_bytes += size
        return _Block(size=size)

    def _split(self, block: _Block, num_bytes: int, is_small: bool) -> None:
        rest = _Block(size=block.size - num_bytes, before=block, after=block.after)
        if block.after is not None:
            block.after.before = rest
        block.after, block.size = rest, num_bytes
        self._keep(rest, is_small)

    def _merge(self, block: _Block, other: _Block) -> None:
        block.size += other.size
        if other is block.before:
            block.before = other.before
            if block.before is not None:
                block.before.after = block
        else:
            block.after = other.after
            if block.after is not None:
                block.after.before = block

    def _keep(self, block: _Block, is_small: bool) -> None:
        self._count += 1
        bisect.insort(self._free[is_small], (block.size, self._count, block))

    def _drop(self, block: _Block, is_small: bool) -> None:
        pool = self._free[is_small]
        place = bisect.bisect_left(pool, block.size, key=lambda entry: entry[0])
        while pool[place][2] is not block:
            place += 1
        pool.pop(place)


def reserved_bytes(log: TraceLog) -> int:
    """What the allocator holds at the end of the log, where memory never runs out."""
    allocator = CachingAllocator()
    for _, number, before, after in log.sizes():
        if number < 0 or before == after:
            continue
        if before:
            allocator.free(number)
        if after:
            allocator.allocate(number, after)
    return allocator.reserved_bytes

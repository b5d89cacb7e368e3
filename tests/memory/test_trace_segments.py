"""The model of the caching allocator: segment sizes, splitting, merging, reuse."""

import random

import pytest

from launcher.memory.trace_log import Birth, TraceLog
from launcher.memory.trace_segments import MIB, CachingAllocator, reserved_bytes


@pytest.mark.parametrize(
    ("asked", "segment"),
    [(512, 2 * MIB), (MIB, 2 * MIB), (MIB + 512, 20 * MIB), (10 * MIB, 10 * MIB), (10 * MIB + 512, 12 * MIB)],
)
def test_the_first_request_reserves_a_segment(asked: int, segment: int) -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, asked)
    assert allocator.reserved_bytes == segment


def test_small_requests_share_a_segment() -> None:
    allocator = CachingAllocator()
    for number in range(4):
        allocator.allocate(number, MIB // 2)
    assert allocator.reserved_bytes == 2 * MIB
    allocator.allocate(4, 512)
    assert allocator.reserved_bytes == 4 * MIB


def test_a_large_block_is_not_split_for_a_rest_of_one_mib() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 9 * MIB)
    allocator.free(0)
    for number, size in enumerate((9 * MIB, 9 * MIB), start=1):
        allocator.allocate(number, size)
    assert allocator.reserved_bytes == 20 * MIB
    allocator.allocate(3, 2 * MIB)  # 2 MiB are left
    assert allocator.reserved_bytes == 20 * MIB
    allocator.allocate(4, 2 * MIB)
    assert allocator.reserved_bytes == 40 * MIB


def test_free_neighbours_are_merged() -> None:
    allocator = CachingAllocator()
    for number in range(4):
        allocator.allocate(number, 5 * MIB)
    for number in (1, 3, 2):
        allocator.free(number)
    allocator.allocate(9, 15 * MIB)
    assert allocator.reserved_bytes == 20 * MIB


def test_a_freed_segment_of_another_size_is_stranded() -> None:
    allocator = CachingAllocator()
    allocator.allocate(0, 64 * MIB)
    allocator.free(0)
    allocator.allocate(1, 66 * MIB)
    assert allocator.reserved_bytes == 130 * MIB


def test_never_less_than_what_is_alive_and_blocks_never_overlap() -> None:
    draw, allocator, live = random.Random(0), CachingAllocator(), {}
    for number in range(3000):
        if live and draw.random() < 0.48:
            gone = draw.choice([*live])
            allocator.free(gone)
            del live[gone]
        else:
            live[number] = 512 * draw.choice([1, 7, 300, 2100, 5000, 30000])
            allocator.allocate(number, live[number])
        assert allocator.reserved_bytes >= sum(live.values())


def test_a_log_is_replayed() -> None:
    log = TraceLog()
    log.mark("forward/before")
    number = log.born(Birth(num_bytes=12 * MIB + 1, origin="empty", shape=(), dtype="uint8"))
    log.resize(number, 0)
    log.resize(number, 3 * MIB)
    log.gone(number)
    assert reserved_bytes(log) == 14 * MIB

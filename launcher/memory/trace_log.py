"""What happened to memory in a traced run, in order; replayed to find peaks and what made them. No torch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

# CUDACachingAllocator.cpp (torch 2.0 to 2.13): kMinBlockSize; every request is rounded up to it.
CUDA_GRANULARITY = 512


def rounded(num_bytes: int, granularity: int = CUDA_GRANULARITY) -> int:
    """`num_bytes` as the allocator counts it: up to the next multiple."""
    return -(-num_bytes // granularity) * granularity


@dataclass(frozen=True, kw_only=True)
class Birth:
    """One storage: its bytes, the operator that made it, and the first tensor seen on it."""

    num_bytes: int
    origin: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The worst moment under one mark: bytes, and bytes of each tag (they add up to it)."""

    num_bytes: int
    by_tag: dict[str, int]


Event = tuple[Literal["born", "gone", "size", "mark"], int, int | str]


@dataclass(kw_only=True)
class TraceLog:
    """Events (kind, storage number, bytes or mark) in order; `births` and `tags` by storage number.

    `elsewhere`: storages that a real run has in host memory.
    """

    events: list[Event] = field(default_factory=list)
    births: list[Birth] = field(default_factory=list)
    tags: dict[int, str] = field(default_factory=dict)
    elsewhere: set[int] = field(default_factory=set)

    def born(self, birth: Birth) -> int:
        """A storage appears; returns its number."""
        number = len(self.births)
        self.births.append(birth)
        self.events.append(("born", number, birth.num_bytes))
        return number

    def gone(self, number: int) -> None:
        """A storage is freed."""
        self.events.append(("gone", number, 0))

    def resize(self, number: int, num_bytes: int) -> None:
        """A storage is grown or emptied in place."""
        self.events.append(("size", number, num_bytes))

    def mark(self, name: str) -> None:
        """What follows belongs to `name`, until the next mark."""
        self.events.append(("mark", 0, name))

    def workspace(self, num_bytes: int, origin: str) -> None:
        """A kernel's own buffer, gone when it returns."""
        number = self.born(Birth(num_bytes=num_bytes, origin=origin, shape=(), dtype="workspace"))
        self.tags[number] = "kernel workspaces"
        self.gone(number)

    def sizes(self, granularity: int = CUDA_GRANULARITY) -> Iterator[tuple[str, int, int, int]]:
        """(mark, storage number, bytes before, bytes after), rounded, in order."""
        live: dict[int, int] = {}
        mark = ""
        for kind, number, value in self.events:
            if kind == "mark":
                mark = str(value)
                yield mark, -1, 0, 0
                continue
            if number in self.elsewhere:
                continue
            before = live.get(number, 0)
            after = rounded(int(value), granularity)
            live[number] = after
            yield mark, number, before, after

    def tag_of(self, number: int, mark: str) -> str:
        """What a storage is: its tag, else the phase that it was born in."""
        return self.tags.get(number) or named_by_birth(mark)

    def peaks(self, granularity: int = CUDA_GRANULARITY) -> dict[str, Peak]:
        """The worst moment under every mark. A mark's window starts with what is alive at its begin."""
        replay = _Replay(self)
        for mark, number, before, after in self.sizes(granularity):
            replay.take(mark, number, before, after)
        return replay.found

    def live_at_peak(self, mark: str, granularity: int = CUDA_GRANULARITY) -> list[tuple[Birth, str, int]]:
        """What was alive at the worst moment under `mark`: (birth, tag, bytes), largest first."""
        goal, total = self.peaks(granularity)[mark].num_bytes, 0
        live: dict[int, int] = {}
        births: dict[int, str] = {}
        for now, number, before, after in self.sizes(granularity):
            if number >= 0:
                births.setdefault(number, now)
                live[number] = after
                total += after - before
            if now == mark and total == goal:
                break
        rows = [(self.births[n], self.tag_of(n, births[n]), size) for n, size in live.items() if size]
        return sorted(rows, key=lambda row: -row[2])


def named_by_birth(mark: str) -> str:
    """What a storage without a tag is, by the `phase/place` that it was born in."""
    phase, _, place = mark.partition("/")
    return {
        "forward": {"before": "embeddings", "after": "logits and loss"}.get(place, "saved activations"),
        "backward": {"before": "gradients of logits"}.get(place, "backward working set"),
        "evaluate": {"after": "evaluation logits"}.get(place, "evaluation activations"),
        "optimizer": "optimizer temporaries",
        "load": "loading",
        "save": "saving",
    }.get(phase, "unnamed")


class _Replay:
    """Running sums of a log, by tag; the worst moment of each mark is kept."""

    def __init__(self, log: TraceLog) -> None:
        self.log = log
        self.births: dict[int, str] = {}
        self.by_tag: dict[str, int] = {}
        self.total = 0
        self.found: dict[str, Peak] = {}

    def take(self, mark: str, number: int, before: int, after: int) -> None:
        """One event; -1 for a mark's begin."""
        if number >= 0:
            birth = self.births.setdefault(number, mark)
            tag = self.log.tag_of(number, birth)
            self.by_tag[tag] = self.by_tag.get(tag, 0) + after - before
            self.total += after - before
        if mark not in self.found or self.total > self.found[mark].num_bytes:
            self.found[mark] = Peak(num_bytes=self.total, by_tag={k: v for k, v in self.by_tag.items() if v})

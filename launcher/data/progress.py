"""How far a preparation is: told by whoever reads rows or turns texts into ids, shown to who asked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from launcher import heartbeat

_listener: ContextVar[Callable[[int], object] | None] = ContextVar("progress of a preparation", default=None)


def report(number: int, phase: str = "tokenising") -> None:
    """So many more texts are about to become ids, or rows were read."""
    heartbeat.beat(phase)
    listener = _listener.get()
    if listener is not None:
        listener(number)


@contextmanager
def reporting_to(listener: Callable[[int], object]) -> Iterator[None]:
    """Inside the block `listener` hears of every batch of texts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)

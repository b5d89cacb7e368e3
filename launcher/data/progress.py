"""How far a tokenisation is: told by whoever turns texts into ids, shown by whoever asked for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from launcher import heartbeat

_listener: ContextVar[Callable[[int], object] | None] = ContextVar("progress of a tokenisation", default=None)


def report(num_texts: int) -> None:
    """So many more texts are about to become ids."""
    heartbeat.beat("tokenising")
    listener = _listener.get()
    if listener is not None:
        listener(num_texts)


@contextmanager
def reporting_to(listener: Callable[[int], object]) -> Iterator[None]:
    """Inside the block `listener` hears of every batch of texts."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)

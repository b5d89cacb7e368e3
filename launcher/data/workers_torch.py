"""Data workers: how one begins, how its failure reaches the rank, and how nothing of it is left.

Seen with torch 2.13: a worker whose window cannot be handed over prints that and lives on, and the rank waits
for ever; one that is killed first tears the exchange of descriptors (ConnectionResetError), and torch's
handler of SIGCHLD raises RuntimeError later, in whatever line of the rank runs then.
"""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import TypeVar

T = TypeVar("T")
TIMEOUT_S = 300  # for one window, which takes milliseconds
_NEWS_S = 0.2  # so long may the news of a dead worker take
_JOIN_S = 5.0


def begin_as_worker(worker: int) -> None:
    """Signals reach the whole group; the rank, which may save first, decides when its workers end.

    A worker that cannot hand a window over ends: by default its thread only prints the error.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Queue._on_queue_feeder_error = staticmethod(_end_worker)  # type: ignore[attr-defined]


def _end_worker(error: Exception, window: object) -> None:
    """The hook of multiprocessing's queues for what goes wrong in their thread (documented in its source)."""
    print(f"data worker {os.getpid()} cannot hand over: {error!r}", file=sys.stderr, flush=True)
    os._exit(1)


@contextmanager
def killed_at_the_end() -> Iterator[None]:
    """Whatever workers are begun inside are gone behind it, however deaf."""
    before = set(multiprocessing.active_children())
    try:
        yield
    finally:
        _kill([child for child in multiprocessing.active_children() if child not in before])


def _kill(children: list[BaseProcess]) -> None:
    """Torch's handler may raise at any line here, once: it takes this for a failure of theirs."""
    for _ in range(2):
        with suppress(RuntimeError):
            for child in children:
                child.kill()
            for child in children:
                child.join(_JOIN_S)


def handed_over(iterator: Iterator[T]) -> Iterator[T]:
    """What the workers hand over. Raises RuntimeError that speaks of a DataLoader worker where one fails."""
    while True:
        try:
            window = next(iterator)
        except StopIteration:
            return
        except (RuntimeError, OSError, EOFError) as error:
            raise RuntimeError(_told(error)) from error
        yield window


def _told(error: Exception) -> str:
    try:
        time.sleep(_NEWS_S)
    except RuntimeError as news:  # what torch's handler says of it names the signal
        return str(news)
    text = str(error)
    return text if "DataLoader" in text else f"DataLoader worker exited or could not hand over: {error!r}"

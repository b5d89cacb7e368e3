"""A data worker that fails ends the rank's wait: killed, raising at its start, unable to hand over."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch.multiprocessing

from launcher.data import workers_torch
from launcher.data.batches_torch import Window, windows
from launcher.data.order import RowOrder
from launcher.data.tokens import TokenStore
from launcher.facts import StepSettings
from launcher.process.failures import LostWorker, explain

SETTINGS = StepSettings(global_batch_size=4, micro_batch_size=4, accumulation_steps=1, num_ranks=1)
ROWS, LENGTH = 64, 2000  # longer than what a pipe holds at once


def _store() -> TokenStore:
    ids = np.arange(ROWS * LENGTH, dtype=np.int32) % 100
    return TokenStore(
        task="classification",
        input_ids=ids,
        offsets=np.arange(ROWS + 1, dtype=np.int64) * LENGTH,
        labels=np.zeros(ROWS, dtype=np.int64),
        trained=None,
        num_targets=np.ones(ROWS, dtype=np.int64),
        max_length=LENGTH,
    )


def _stream(workers: int) -> Iterator[Window]:
    store = _store()
    order = RowOrder(np.full(ROWS, LENGTH), 4, 0, False)
    return windows(store, order, SETTINGS, 0, 0, 10_000, 0, num_workers=workers)


def _workers() -> list[int]:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    names = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    own = Path("/proc/self/cmdline").read_bytes()
    return [pid for pid, name in names.items() if name == own]  # forked, not started


def _failure(act: Callable[[], None], workers: int = 2) -> BaseException:
    """What comes out of a stream that something happened to."""
    stream = _stream(workers)
    with pytest.raises((RuntimeError, OSError)) as caught:  # noqa: PT012
        next(stream)
        act()
        for _ in range(2000):
            next(stream)
    return caught.value


@contextmanager
def _temporary_folder(path: Path) -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, str(path)
    try:
        yield
    finally:
        tempfile.tempdir = before


def test_a_killed_worker_is_told() -> None:
    error = _failure(lambda: os.kill(_workers()[-1], signal.SIGKILL))
    known = explain(error, {})
    assert isinstance(known, LostWorker)
    assert "dataloader_num_workers=0" in str(known)
    assert known.exit_code == 75


def test_a_worker_that_raises_at_its_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(worker: int) -> None:
        raise OSError("no room for a worker")

    monkeypatch.setattr(workers_torch, "begin_as_worker", fail)
    known = explain(_failure(lambda: None), {})
    assert isinstance(known, LostWorker)
    assert "no room for a worker" in str(known)


def test_a_worker_that_cannot_hand_over_ends_instead_of_being_waited_for(tmp_path: Path) -> None:
    """Tensors travel through a socket whose path a deep temporary folder makes too long."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with _temporary_folder(deep):
        assert torch.multiprocessing.get_sharing_strategy() == "file_descriptor"
        known = explain(_failure(lambda: None, workers=1), {})
    assert isinstance(known, LostWorker)


def test_a_worker_that_stands_still_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_torch, "TIMEOUT_S", 1)
    monkeypatch.setattr(workers_torch, "begin_as_worker", lambda worker: time.sleep(60))
    known = explain(_failure(lambda: None, workers=1), {})
    assert isinstance(known, LostWorker)
    assert "timed out" in str(known)
    assert _workers() == []


def test_nothing_is_left_of_a_stream_that_failed() -> None:
    _failure(lambda: os.kill(_workers()[-1], signal.SIGKILL))
    assert _workers() == []

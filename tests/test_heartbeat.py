"""A rank's heartbeat, written by one process and read by another."""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher import heartbeat
from launcher.heartbeat import FOLDER_VARIABLE, TIMEOUT_VARIABLE, Beat, read, read_all, start, timeout_s
from launcher.process import liveness
from launcher.process.liveness import LOST_S, START_S, Liveness, patience_s, pids


@pytest.fixture(autouse=True)
def no_record_is_left() -> Iterator[None]:
    """The record belongs to the process."""
    yield
    heartbeat._mine.clear()


def test_a_beat_is_read_by_another_process(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        start(3, {FOLDER_VARIABLE: str(tmp_path)})
        heartbeat.beat("optimizer", 12)
        os._exit(0)
    os.waitpid(child, 0)
    (beat,) = read_all(tmp_path)
    assert (beat.rank, beat.pid, beat.step, beat.phase) == (3, child, 12, "optimizer")
    assert 0 <= time.monotonic() - beat.since_s < 600
    assert beat.place() == "'optimizer' (step 12)"


def test_without_a_folder_the_record_has_no_name(tmp_path: Path) -> None:
    record = start(0, {})
    heartbeat.beat("forward")
    beat = read(record.descriptor)
    assert beat is not None
    assert (beat.phase, beat.step, beat.place()) == ("forward", -1, "'forward'")


def test_without_a_record_a_beat_is_nothing() -> None:
    heartbeat.beat("forward", 1)
    heartbeat.again()
    heartbeat.be_patient(1)


def test_again_keeps_phase_and_step() -> None:
    record = start(0, {})
    heartbeat.beat("evaluate", 4)
    heartbeat.again()
    beat = read(record.descriptor)
    assert beat is not None
    assert (beat.phase, beat.step) == ("evaluate", 4)


def test_a_forked_worker_is_not_the_rank() -> None:
    record = start(0, {})
    heartbeat.beat("forward", 1)
    child = os.fork()
    if child == 0:
        heartbeat.beat("worker", 2)
        os._exit(0)
    os.waitpid(child, 0)
    beat = read(record.descriptor)
    assert beat is not None
    assert beat.phase == "forward"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 1800.0), ("60", 60.0), ("0", float("inf")), ("-1", float("inf")), ("x", 1800.0)],
)
def test_the_time_without_a_beat(text: str, seconds: float) -> None:
    assert timeout_s({TIMEOUT_VARIABLE: text}) == seconds


def test_no_record_and_a_cut_one_are_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "rank-0") is None
    (tmp_path / "rank-0").write_bytes(b"1")
    assert read_all(tmp_path) == []


def test_a_record_that_is_made_and_not_written_is_no_beat(tmp_path: Path) -> None:
    """All zeros would be a rank that has stood still since the machine's start."""
    (tmp_path / "rank-0").write_bytes(bytes(heartbeat._RECORD.size))
    assert read(tmp_path / "rank-0") is None


def test_a_beat_never_looks_empty_to_a_reader() -> None:
    """Read a hundred thousand times while another thread writes."""
    record, ended = start(0, {}), threading.Event()
    heartbeat.beat("forward", 7)

    def write() -> None:
        while not ended.is_set():
            heartbeat.beat("forward", 7)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [read(record.descriptor) for _ in range(100_000)]
    finally:
        ended.set()
        writer.join()
    assert all(beat is not None and (beat.phase, beat.step) == ("forward", 7) for beat in found)


class Ranks(Liveness):
    """A liveness whose clock and ranks are given."""

    def __init__(self, folder: Path, timeout: float, now: float) -> None:
        super().__init__(folder, timeout)
        self.began_s = now - 10_000


def _leave(folder: Path, *beats: Beat) -> None:
    for beat in beats:
        packed = heartbeat._RECORD.pack(
            beat.pid, beat.step, beat.since_s, beat.patience_s, beat.phase.encode()
        )
        (folder / f"rank-{beat.rank}").write_bytes(packed)


def _beat(
    rank: int, ago_s: float, *, step: int = 5, phase: str = "optimizer", pid: int = 0, more: float = 0
) -> Beat:
    now = time.monotonic()
    patience_s = now + more if more else 0.0
    return Beat(
        rank=rank, pid=pid or os.getpid(), step=step, phase=phase, since_s=now - ago_s, patience_s=patience_s
    )


def test_the_rank_that_is_behind_is_the_one_that_hangs(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, 700, step=6), _beat(1, 690, step=5, phase="forward"))
    found = Ranks(tmp_path, 600, time.monotonic()).look()
    assert found is not None
    assert (found.rank, found.is_hung, found.must_end) == (1, True, True)
    assert re.search(
        r"rank 1 has stood in 'forward' \(step 5\) for \d+ s; waiting for it: rank 0", found.words
    )


def test_b042_a_stopped_process_is_the_one_whatever_the_steps_say(tmp_path: Path) -> None:
    """Both stand in the same step: which beat is older depends on where the stop fell."""
    stopped = subprocess.Popen(["sleep", "600"])
    try:
        os.kill(stopped.pid, signal.SIGSTOP)
        os.waitpid(stopped.pid, os.WUNTRACED)
        _leave(tmp_path, _beat(0, 700, phase="backward"), _beat(1, 690, pid=stopped.pid))
        found = Ranks(tmp_path, 600, time.monotonic()).look()
    finally:
        stopped.kill()
        stopped.wait()
    assert found is not None
    assert found.rank == 1
    assert f"(its process was stopped by a signal; `kill -CONT {stopped.pid}`" in found.words
    assert found.words.endswith("waiting for it: rank 0 in 'backward' (step 5)")


def test_a_rank_that_waits_for_a_moving_one_does_not_hang(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, 1, phase="tokenising"), _beat(1, 9000))
    assert Ranks(tmp_path, 600, time.monotonic()).look() is None


def test_a_rank_that_saves_is_given_the_time_it_asked_for(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, 700, more=60))
    assert Ranks(tmp_path, 600, time.monotonic()).look() is None


def test_a_start_may_take_longer_than_was_asked(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, START_S / 2, step=-1))
    assert Ranks(tmp_path, 1, time.monotonic()).look() is None
    _leave(tmp_path, _beat(0, START_S * 2, step=-1))
    assert Ranks(tmp_path, 1, time.monotonic()).look() is not None


def test_ranks_that_never_came_are_told(tmp_path: Path) -> None:
    found = Ranks(tmp_path, 60, time.monotonic()).look()
    assert found is not None
    assert "no rank has begun" in found.words


def test_b042_a_rank_that_is_gone_is_named_and_the_starter_given_time_to_notice(tmp_path: Path) -> None:
    gone = 2**22 + 1
    _leave(tmp_path, _beat(0, 1), _beat(1, 1, pid=gone, phase="forward"))
    liveness = Ranks(tmp_path, 600, time.monotonic())
    found = liveness.look()
    assert found is not None
    assert (found.rank, found.is_hung, found.must_end) == (1, False, False)
    assert f"rank 1 (process {gone}) is gone; it was last in 'forward' (step 5)" in found.words
    beat, since_s = liveness.lost[1]
    liveness.lost[1] = (beat, since_s - LOST_S - 1)
    later = liveness.look()
    assert later is not None
    assert later.must_end


def test_a_rank_that_ended_by_itself_is_not_lost(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, 2, pid=2**22 + 1, phase=heartbeat.DONE), _beat(1, 1, pid=2**22 + 2))
    assert Ranks(tmp_path, 600, time.monotonic()).look() is None


def test_a_rank_that_has_just_ended_by_itself_is_not_lost_either(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, 0, pid=2**22 + 1, phase=heartbeat.DONE), _beat(1, 1))
    assert Ranks(tmp_path, 600, time.monotonic()).look() is None


def test_a_rank_whose_loss_ended_another_at_once_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "TOLD_S", 600.0)  # however late this machine looks
    _leave(tmp_path, _beat(0, 0, phase=heartbeat.DONE), _beat(1, 1, pid=2**22 + 2))
    found = Ranks(tmp_path, 600, time.monotonic()).look()
    assert found is not None
    assert found.rank == 1


def test_only_a_living_rank_is_given_time(tmp_path: Path) -> None:
    _leave(tmp_path, _beat(0, 1, pid=2**22 + 1, more=900))
    assert patience_s(tmp_path) == 0
    _leave(tmp_path, _beat(1, 1, more=900))
    assert patience_s(tmp_path) > time.monotonic()
    assert pids(tmp_path) == [os.getpid()]

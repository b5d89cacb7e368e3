"""Ranks are told from starters, killed at once, and nothing of a command stays."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.process.children import descendants
from launcher.rehearse.started import Started, is_rank

_SLEEP = "import time; time.sleep(1800)"
# Names run.py as accelerate does, starts two ranks, and waits for them.
_STARTER = """
import subprocess, sys
for rank in [subprocess.Popen([sys.executable, "-u", sys.argv[-1]]) for _ in range(2)]:
    rank.wait()
sys.exit(7)
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    run = tmp_path / "launcher" / "run.py"
    run.parent.mkdir()
    run.write_text(_SLEEP)
    starter = tmp_path / "starter.py"
    starter.write_text(_STARTER)
    with Started([str(starter), "launch", str(run)], tmp_path / "log.txt") as found:
        _until(lambda: len([pid for pid in descendants(found.process.pid) if is_rank(pid)]) == 2)
        yield found


def _until(holds: object) -> None:
    deadline = time.monotonic() + 300
    while not holds() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.02)


def test_every_rank_is_killed_and_the_starter_is_left_to_notice(started: Started) -> None:
    assert not is_rank(started.process.pid)
    assert len(started.kill_ranks()) == 2
    assert started.wait() == 7


def test_leaving_the_block_ends_all(started: Started) -> None:
    below = [started.process.pid, *descendants(started.process.pid)]
    started.end()
    assert len(below) == 3
    _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    assert not any(Path(f"/proc/{pid}").exists() for pid in below)


def test_end_before_the_condition_gives_the_exit_code(tmp_path: Path) -> None:
    with Started(["-c", "print('hello'); raise SystemExit(3)"], tmp_path / "log.txt") as command:
        assert command.wait_until(lambda: False) == 3
    assert command.text == "hello\n"


def test_cards_and_hub_are_out_of_sight(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.exit(os.environ['CUDA_VISIBLE_DEVICES'] + os.environ['HF_HUB_OFFLINE'] != '1')"
    )
    with Started(["-c", code], tmp_path / "log.txt") as command:
        assert command.wait() == 0
    assert sys.executable

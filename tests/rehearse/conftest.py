"""Rehearsals as a person starts them, in an empty directory, and what they may have left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.rehearse.shrink import NUM_STEPS

Rehearse = Callable[..., subprocess.CompletedProcess[str]]
MARK = "LAUNCHER_TEST_REHEARSAL"
LENGTHS = (NUM_STEPS, 8 * NUM_STEPS)  # the longer one where a run was over before it could be killed
ENDS_S = 60.0  # at most: whoever watches a process sees its end a moment later


@pytest.fixture
def started_variables(tmp_path: Path, root: Path) -> dict[str, str]:
    """Few threads, a temporary folder and a mark of one's own, by which everything started is found."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    own = {"TMPDIR": str(temporary), MARK: str(tmp_path), "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    return os.environ | own | {"OMP_WAIT_POLICY": "PASSIVE"}


@pytest.fixture
def rehearse(tmp_path: Path, started_variables: dict[str, str]) -> Rehearse:
    """Run `launcher rehearse ...` to its end; asserts that it left nothing behind."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "launcher", "rehearse", *words],
            cwd=tmp_path,
            env=started_variables,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        assert_nothing_left(tmp_path)
        return done

    return run


def assert_nothing_left(folder: Path) -> None:
    """No process that carries the mark, no temporary file."""
    deadline = time.monotonic() + ENDS_S
    while marked(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(folder) == []
    assert [*(folder / "temporary").iterdir()] == []


def marked(folder: Path) -> list[str]:
    """The command lines of all processes that were started with the mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={folder}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return found

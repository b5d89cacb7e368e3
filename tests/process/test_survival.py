"""Runs that are lost, hung or left alone: real ranks under `launcher run`, torchrun, a closed terminal.

All of them, minutes: `python -m pytest tests/process/test_survival.py -m "slow or long"`.
"""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.process.children import send
from launcher.process.watchdog import parent_of
from tests.launching import ROOT, environment, metrics
from tests.process import traces
from tests.process.ending import write_recipe

MOST_STEPS, HELD_AT = 40, 20
STEPS = [f"training.max_steps={MOST_STEPS}", "training.save_steps=10", "training.save_total_limit=2"]
LONG = ["training.max_steps=100000", "training.save_steps=20", "training.save_total_limit=1"]
# Every Python of a held run reads it at its start: that save waits until the test has done its harm.
HOLD = f"""
import os, sys, time
def hold(event, arguments):
    if event == "os.mkdir" and str(arguments[0]).endswith(".writing-checkpoint-{HELD_AT}"):
        while not os.path.exists(os.environ["LAUNCHER_TEST_GATE"]):
            time.sleep(0.02)
sys.addaudithook(hold)
"""
WAIT_S = 600  # for what a loaded machine takes long for


class Started:
    """A run with output in a file, whose ranks are found by a mark."""

    def __init__(self, folder: Path, command: list[str], *, held: bool = False, **variables: str) -> None:
        """Start it in a session of its own. `held`: until `go_on` it gets no further than step `HELD_AT`."""
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.output = (folder / "output.txt").open("wb")
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment() | {traces.MARK: self.mark} | (self._hold() if held else {}) | variables,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            start_new_session=True,
        )

    def _hold(self) -> dict[str, str]:
        hook = self.folder / "hook"
        hook.mkdir(exist_ok=True)
        (hook / "sitecustomize.py").write_text(HOLD)
        path = os.pathsep.join(filter(None, [str(hook), os.environ.get("PYTHONPATH", "")]))
        return {"PYTHONPATH": path, "LAUNCHER_TEST_GATE": str(self.folder / "gate")}

    def go_on(self) -> None:
        """The save that was held may be made."""
        (self.folder / "gate").touch()

    def text(self) -> str:
        """What was said so far."""
        return (self.folder / "output.txt").read_text(errors="replace")

    def wait_for_steps(self, count: int) -> None:
        """Until so many lines are in the log."""
        log = self.folder / "runs/job/metrics.jsonl"
        deadline = time.monotonic() + WAIT_S
        while not (log.exists() and log.read_bytes().count(b"\n") > count):
            assert self.process.poll() is None, self.text()[-3000:]
            assert time.monotonic() < deadline, self.text()[-3000:]
            time.sleep(0.1)

    def rank(self, number: int) -> int:
        """The rank's pid; its data workers look like it."""
        found = {pid: rank for pid in traces.marked(self.mark) if (rank := traces.rank_of(pid)) is not None}
        return next(pid for pid, rank in found.items() if rank == number and parent_of(pid) not in found)

    def end(self) -> int:
        """The exit code, once all is over."""
        return self.process.wait(timeout=WAIT_S)

    def clean(self) -> None:
        """Leave nothing behind."""
        send(traces.marked(self.mark), signal.SIGKILL)
        self.process.wait()
        self.output.close()


@pytest.fixture
def started() -> Iterator[list[Started]]:
    """Runs to be cleaned away after the test."""
    runs: list[Started] = []
    yield runs
    for run in runs:
        run.clean()


Begin = Callable[..., Started]


@pytest.fixture
def begin(tmp_path: Path, started: list[Started]) -> Begin:
    """Starts `launcher run` on the tiny recipe with more words."""
    recipe = write_recipe(tmp_path)

    def launch(*words: str, **more: Any) -> Started:
        command = [sys.executable, "-m", "launcher", "run", str(recipe), *words]
        started.append(Started(tmp_path, command, **more))
        return started[-1]

    return launch


def _steps(folder: Path) -> list[int]:
    return [line["step"] for line in metrics(folder / "runs/job") if "loss" in line]


@pytest.mark.slow
def test_b042_a_rank_that_stands_still_is_named_and_everything_ended(begin: Begin) -> None:
    run = begin("--backend", "multi_gpu", "--gpus", "2", "--hang_timeout", "10", *LONG)
    run.wait_for_steps(3)
    os.kill(run.rank(1), signal.SIGSTOP)
    assert run.end() == 75, run.text()[-3000:]
    assert re.search(
        r"rank 1 has stood in '[a-z ]+' \(step \d+\) for \d+ s "
        r"\(its process was stopped.*; waiting for it: rank 0",
        run.text(),
    )
    assert traces.marked(run.mark) == []


@pytest.mark.slow
def test_a_killed_rank_is_named_and_the_run_continues_by_itself(begin: Begin) -> None:
    run = begin("--backend", "multi_gpu", "--gpus", "2", "--restarts", "2", *STEPS, held=True)
    run.wait_for_steps(12)
    os.kill(run.rank(1), signal.SIGKILL)
    run.go_on()
    assert run.end() == 0, run.text()[-3000:]
    assert re.search(r"restart 1 of 2: .*rank 1 .*Continues from checkpoint-\d+", run.text())
    assert _steps(run.folder) == list(range(1, MOST_STEPS + 1))


@pytest.mark.long
def test_a_run_that_gains_nothing_is_not_restarted_for_ever(begin: Begin) -> None:
    """Both starts hang before anything is saved."""
    run = begin("--restarts", "5", "--hang_timeout", "0.01", "training.max_steps=100000")
    assert run.end() == 75, run.text()[-3000:]
    assert run.text().count("restart 1 of 5") == 1
    assert "restart 2 of 5" not in run.text()
    assert "no step was gained" in run.text()


@pytest.mark.long
def test_ctrl_c_and_mistakes_are_not_restarted(begin: Begin) -> None:
    run = begin("--restarts", "3", *LONG)
    run.wait_for_steps(3)
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 75, run.text()[-3000:]
    assert "restart 1" not in run.text()
    again = begin("--restarts", "3")
    assert again.end() == 2
    assert "holds a run already" in again.text()
    assert "restart 1" not in again.text()


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
ACCELERATE = [sys.executable, "-m", "accelerate.commands.launch", "--config_file"]
ACCELERATE += ["accelerate_configs/multi_gpu.yaml", "--num_processes", "2", "--main_process_port", "0"]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(TORCHRUN, marks=pytest.mark.slow, id="torchrun"),
        pytest.param(ACCELERATE, marks=pytest.mark.long, id="accelerate"),
    ],
)
def test_starters_own_restarts_resume(tmp_path: Path, started: list[Started], head: list[str]) -> None:
    recipe = write_recipe(tmp_path)
    command = [*head, "--max_restarts=1", "launcher/run.py", "--recipe", str(recipe), *STEPS]
    started.append(run := Started(tmp_path, command, held=True))
    run.wait_for_steps(12)
    os.kill(run.rank(0), signal.SIGKILL)
    run.go_on()
    assert run.end() == 0, run.text()[-3000:]
    assert "resumed from" in run.text()
    assert _steps(tmp_path) == list(range(1, MOST_STEPS + 1))


@pytest.mark.long
@pytest.mark.parametrize("backend", ["zero2", "zero3", "fsdp2"])
def test_every_kind_of_backend_continues_by_itself(begin: Begin, backend: str) -> None:
    run = begin("--backend", backend, "--gpus", "2", "--restarts", "2", *STEPS, held=True)
    run.wait_for_steps(12)
    os.kill(run.rank(1), signal.SIGKILL)
    run.go_on()
    assert run.end() == 0, run.text()[-3000:]
    assert re.search(r"restart 1 of 2: .*rank 1 ", run.text())
    assert _steps(run.folder) == list(range(1, MOST_STEPS + 1))


@pytest.mark.long
def test_torchruns_restarts_do_not_take_a_folder_that_was_refused(
    tmp_path: Path, started: list[Started]
) -> None:
    recipe = write_recipe(tmp_path)
    folder = tmp_path / "runs/job"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("{}")
    head = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=1"]
    command = [*head, "--max_restarts=1", "launcher/run.py", "--recipe", str(recipe)]
    started.append(run := Started(tmp_path, command))
    assert run.end() != 0
    assert run.text().count("holds a run already") == 2
    assert not (folder / "metrics.jsonl").exists()


@pytest.mark.slow
def test_a_detached_run_outlives_its_terminal_and_nothing_is_world_writable(
    tmp_path: Path, begin: Begin
) -> None:
    os.umask(before := os.umask(0))
    previous = os.umask(0)
    try:
        run = begin("--detach", *LONG, HF_TOKEN="hf_abcdefghijklmnopqrstuv")
        assert run.end() == 0
    finally:
        os.umask(previous)
    assert before == previous
    said = run.text()
    pid = int(re.search(r"process (\d+)", said)[1])  # type: ignore[index]
    log = Path(re.search(r"tail -f (\S+)", said)[1])  # type: ignore[index]
    assert os.getsid(pid) == pid
    metrics_file = tmp_path / "runs/job/metrics.jsonl"
    deadline = time.monotonic() + WAIT_S
    while not (metrics_file.exists() and metrics_file.read_bytes().count(b"\n") > 3):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    os.kill(pid, signal.SIGTERM)
    while traces.marked(run.mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert traces.marked(run.mark) == []
    assert "resumable" in log.read_text()
    paths = [tmp_path / "runs", *(tmp_path / "runs").rglob("*")]
    assert [path for path in paths if path.stat().st_mode & stat.S_IWOTH] == []
    assert [path for path in paths if path.is_file() and b"hf_abcdef" in path.read_bytes()] == []
    assert json.loads((tmp_path / "runs/job/environment.json").read_text())["variables"]["HF_TOKEN"]


@pytest.mark.long
def test_a_bare_starts_rank_that_stands_still_is_ended(tmp_path: Path, started: list[Started]) -> None:
    recipe = write_recipe(tmp_path)
    command = [sys.executable, "launcher/run.py", "--recipe", str(recipe), *LONG]
    started.append(run := Started(tmp_path, command, LAUNCHER_HANG_TIMEOUT_S="6"))
    run.wait_for_steps(3)
    os.kill(run.rank(0), signal.SIGSTOP)
    assert run.end() == -signal.SIGKILL
    assert re.search(r"rank 0 has stood in '[a-z ]+'( \(step \d+\))? for \d+ s: it is ended", run.text())


@pytest.mark.long
def test_a_closed_terminal_saves_and_ends(tmp_path: Path, started: list[Started]) -> None:
    recipe = write_recipe(tmp_path)
    ours, theirs = pty.openpty()
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-m", "launcher", "run", str(recipe), *LONG],
        cwd=ROOT,
        env=environment() | {traces.MARK: mark},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: (fcntl.ioctl(0, termios.TIOCSCTTY, 0), None)[1],
    )
    os.close(theirs)
    log = tmp_path / "runs/job/metrics.jsonl"
    deadline = time.monotonic() + WAIT_S
    os.set_blocking(ours, False)
    while not (log.exists() and log.read_bytes().count(b"\n") > 3) and time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            os.read(ours, 65536)
        time.sleep(0.05)
    os.close(ours)
    assert process.wait(timeout=WAIT_S) == 75
    assert traces.marked(mark) == []
    assert list((tmp_path / "runs/job").glob("checkpoint-*"))


@pytest.mark.long
def test_a_killed_data_worker_ends_the_run_in_words(begin: Begin) -> None:
    run = begin("--restarts", "1", "data.dataloader_num_workers=2", *STEPS, held=True)
    run.wait_for_steps(12)
    rank = run.rank(0)
    workers = [pid for pid in traces.marked(run.mark) if parent_of(pid) == rank and traces.rank_of(pid) == 0]
    os.kill(workers[0], signal.SIGKILL)
    run.go_on()
    assert run.end() == 0, run.text()[-3000:]
    assert re.search("a data worker (was killed|failed)", run.text())
    assert "restart 1 of 1: stopped, resumable" in run.text()
    assert _steps(run.folder) == list(range(1, MOST_STEPS + 1))

"""When a run is started again, by whom, and when no more; real processes that end in each way."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from launcher.errors import BadValue
from launcher.facts import RunArguments
from launcher.plan.resume_file import NAME as RESUME_FILE
from launcher.plan.run_id import FILE, KEY, RUN_VARIABLE, is_taken_by, run_id
from launcher.process.command import Command, on_port
from launcher.process.restarts import (
    COUNT_VARIABLE,
    continued,
    read_hang_timeout,
    read_restarts,
    restart_count,
    supervise_again,
)
from launcher.process.supervise import Outcome
from launcher.train.checkpoint_files import MANIFEST, entry

KILL = "os.kill(os.getpid(), 9)"
SAVE = (
    "import hashlib; d = pathlib.Path(folder, f'checkpoint-{count + 1}'); d.mkdir(parents=True); "
    "(d / 'loop.json').write_text('{}'); "
    "h = hashlib.sha256(b'{}').hexdigest(); "
    "(d / 'manifest.json').write_text(json.dumps({'step': count + 1, 'files': {'loop.json': "
    "{'bytes': 2, 'sha256': h}}}))"
)


def again(tmp_path: Path, code: str, most: int) -> tuple[Outcome, list[str], list[str]]:
    """Supervise a process that runs the code with `count` and `folder`: outcome, lines said, its output."""
    head = (
        "import json, os, pathlib, sys; "
        f"count = int(os.environ.get({COUNT_VARIABLE!r}, 0)); folder = {str(tmp_path)!r}; "
        "print(count, flush=True); "
    )
    command = Command(argv=(sys.executable, "-c", head + code), environment={}, files={})
    said: list[str] = []
    out = io.StringIO()
    outcome = supervise_again(
        command, os.environ, folder=tmp_path, most=most, say=said.append, stdout=out, stderr=io.StringIO()
    )
    return outcome, said, out.getvalue().split()


def test_a_killed_run_is_started_again_with_count_and_reason(tmp_path: Path) -> None:
    outcome, said, counts = again(tmp_path, f"{KILL} if count == 0 else None", 3)
    assert (outcome.exit_code, counts) == (0, ["0", "1"])
    assert len(said) == 1
    assert said[0].startswith("restart 1 of 3: SIGKILL: killed")
    assert "Continues from the beginning" in said[0]


def test_a_resumable_end_is_continued_from_the_newest_checkpoint(tmp_path: Path) -> None:
    outcome, said, counts = again(tmp_path, f"{SAVE}; sys.exit(75 if count < 2 else 0)", 5)
    assert (outcome.exit_code, counts) == (0, ["0", "1", "2"])
    assert "restart 1 of 5" in said[0]
    assert "from checkpoint-1" in said[0]
    assert "from checkpoint-2" in said[1]


def test_without_a_gain_since_the_last_restart_it_ends(tmp_path: Path) -> None:
    outcome, said, counts = again(tmp_path, "sys.exit(75)", 5)
    assert (outcome.exit_code, counts) == (75, ["0", "1"])
    assert "no step was gained" in said[-1]


def test_what_the_run_noted_to_change_is_a_gain(tmp_path: Path) -> None:
    note = f"pathlib.Path(folder, {RESUME_FILE!r}).write_text(str(count)); sys.exit(75)"
    _, said, counts = again(tmp_path, note, 2)
    assert counts == ["0", "1", "2"]
    assert "all 2 restarts are used" in said[-1]


@pytest.mark.parametrize("code", [1, 2, 3])
def test_failures_and_mistakes_are_not_started_again(tmp_path: Path, code: int) -> None:
    outcome, said, counts = again(tmp_path, f"sys.exit({code})", 3)
    assert (outcome.exit_code, said, counts) == (code, [], ["0"])


def test_a_failure_that_a_rank_told_is_none_of_a_lost_rank(tmp_path: Path) -> None:
    """Numbers that are not finite: the rank says 1, then the starter kills the others."""
    told = "open(os.environ['LAUNCHER_EXIT_FILE'], 'w').write('{\"exit_code\": 1}'); " + KILL
    outcome, said, counts = again(tmp_path, told, 3)
    assert (outcome.exit_code, said, counts) == (1, [], ["0"])


def test_restarts_are_not_asked_for_by_default(tmp_path: Path) -> None:
    outcome, said, counts = again(tmp_path, "sys.exit(75)", 0)
    assert (outcome.exit_code, said, counts) == (75, [], ["0"])


def test_all_starts_of_one_run_have_one_name(tmp_path: Path) -> None:
    code = f"print(os.environ[{RUN_VARIABLE!r}], flush=True); sys.exit(75)"
    _, _, words = again(tmp_path, code, 1)
    assert words[1] == words[3]


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "", "١"])
def test_a_count_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadValue, match="--restarts"):
        read_restarts(text)


def test_the_hang_timeout_becomes_a_variable() -> None:
    assert read_hang_timeout(None) == {}
    assert read_hang_timeout("90s") == {"LAUNCHER_HANG_TIMEOUT_S": "90"}
    for text in ("x", "-1", "inf", "nan"):
        with pytest.raises(BadValue, match="--hang_timeout"):
            read_hang_timeout(text)


def test_a_restart_meets_on_another_port() -> None:
    argv = ("accelerate", "launch", "--main_process_port", "29500", "run.py", "seed=29500")
    other = on_port(Command(argv=argv, environment={}, files={}), 4711)
    assert other.argv == ("accelerate", "launch", "--main_process_port", "4711", "run.py", "seed=29500")


@pytest.mark.parametrize("name", [COUNT_VARIABLE, "TORCHELASTIC_RESTART_COUNT"])
def test_starters_tell_of_a_restart(name: str) -> None:
    assert restart_count({name: "2"}) == 2
    assert restart_count({name: "0"}) == 0
    assert restart_count({}) == 0


def _checkpoint(folder: Path, step: int) -> None:
    place = folder / f"checkpoint-{step}"
    place.mkdir(parents=True)
    (place / "loop.json").write_text("{}")
    files = {"loop.json": entry(place / "loop.json")}
    (place / MANIFEST).write_text(json.dumps({"step": step, "files": files}))


class TestContinued:
    """What a restarted rank makes of its command line."""

    def arguments(self, tmp_path: Path, **more: object) -> RunArguments:
        return RunArguments(recipe="quickstart", output_dir=str(tmp_path), **more)  # type: ignore[arg-type]

    def taken(self, tmp_path: Path) -> Path:
        folder = tmp_path / "quickstart"
        folder.mkdir()
        (folder / FILE).write_text(json.dumps({KEY: "this run"}))
        return folder

    ENVIRON = {COUNT_VARIABLE: "1", RUN_VARIABLE: "this run"}

    def test_the_first_start_is_as_typed(self, tmp_path: Path) -> None:
        asked = self.arguments(tmp_path, new=True)
        assert continued(asked, {RUN_VARIABLE: "this run"}) is asked

    def test_its_own_run_is_resumed_even_after_new(self, tmp_path: Path) -> None:
        self.taken(tmp_path)
        found = continued(self.arguments(tmp_path, new=True), self.ENVIRON)
        assert (found.new, found.resume) == (False, "auto")

    def test_another_runs_folder_is_not_taken(self, tmp_path: Path) -> None:
        self.taken(tmp_path)
        asked = self.arguments(tmp_path)
        assert continued(asked, self.ENVIRON | {RUN_VARIABLE: "another"}) is asked

    def test_a_run_that_began_from_elsewhere_begins_there_until_it_has_saved(self, tmp_path: Path) -> None:
        folder = self.taken(tmp_path)
        asked = self.arguments(tmp_path, resume="/elsewhere/checkpoint-5")
        assert continued(asked, self.ENVIRON).resume == "/elsewhere/checkpoint-5"
        _checkpoint(folder, 7)
        assert continued(asked, self.ENVIRON).resume == "auto"


def test_a_bare_starters_runs_are_told_apart_by_its_process(tmp_path: Path) -> None:
    name = run_id({})
    assert name.startswith(f"{os.getppid()}:")
    assert run_id({RUN_VARIABLE: "x"}) == "x"
    assert not is_taken_by(tmp_path, name)
    (tmp_path / FILE).write_text("[1]")
    assert not is_taken_by(tmp_path, name)
    (tmp_path / FILE).write_text(json.dumps({KEY: name}))
    assert is_taken_by(tmp_path, name)

"""A run in the background: its words, its log, and what is refused while somebody still looks."""

import os
from pathlib import Path

import pytest

from launcher.errors import BadValue, Conflict
from launcher.facts import RunArguments
from launcher.process.detach import LOG_VARIABLE, Detached, detach, require_folder, without_detach
from launcher.recipe.load import load_recipe
from launcher.train.folder import Claim
from launcher.train.owner import give_up


def test_the_background_process_gets_every_other_word() -> None:
    assert without_detach(["quickstart", "--detach", "--name", "x"]) == ["quickstart", "--name", "x"]


def test_it_says_how_to_watch_and_how_to_stop(tmp_path: Path) -> None:
    said = "\n".join(Detached(pid=4711, log=tmp_path / "a b.log").lines())
    assert f"tail -f '{tmp_path}/a b.log'" in said
    assert "kill 4711" in said


# Popen complains of a child that is let go on purpose.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_output_goes_to_a_file_that_is_not_world_writable(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        started = detach(["--help"], tmp_path / "run", os.environ)
        os.waitpid(started.pid, 0)
    finally:
        os.umask(before)
    assert "usage: launcher run" in started.log.read_text()
    assert started.log.parent == tmp_path / "run"
    assert not started.log.stat().st_mode & 0o002
    assert not started.log.parent.stat().st_mode & 0o002


def test_a_folder_without_room_for_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadValue, match="the log cannot be written"):
        detach(["--help"], tmp_path / "file" / "run", os.environ)


def test_a_used_folder_is_refused_unless_the_run_may_take_it(tmp_path: Path) -> None:
    recipe = load_recipe("quickstart").recipe
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(Conflict, match="holds a run already"):
        require_folder(RunArguments(recipe="quickstart"), recipe, tmp_path)
    give_up(tmp_path)
    require_folder(RunArguments(recipe="quickstart", resume="auto"), recipe, tmp_path)
    require_folder(RunArguments(recipe="quickstart", new=True), recipe, tmp_path)
    require_folder(RunArguments(recipe="quickstart"), recipe, tmp_path / "free")


def test_the_log_stays_with_its_own_run_under_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    for name in ("plan.json", "run-1.log", "run-2.log"):
        (folder / name).write_text(name)
    monkeypatch.setenv(LOG_VARIABLE, str(folder / "run-2.log"))
    Claim(folder=folder, aside=tmp_path / "job.1").take()
    give_up(folder)
    assert (folder / "run-2.log").read_text() == "run-2.log"
    assert sorted(path.name for path in (tmp_path / "job.1").glob("*.*")) == ["plan.json", "run-1.log"]

"""What stands around a run: the folder it will have, and what follows it whoever still listens."""

import os
import sys
from pathlib import Path

import pytest

from launcher.facts import RunArguments
from launcher.process.after_run import AfterRun
from launcher.process.around_run import AroundRun, around_run
from launcher.recipe.load import load_recipe
from tests import instance
from tests.process.test_after_run import SHUTDOWN, write_run


def test_the_folder_is_the_one_that_the_run_will_have(tmp_path: Path) -> None:
    plain = load_recipe("quickstart")
    typed = RunArguments(recipe="quickstart", name="mine", output_dir=str(tmp_path / "out"))
    assert around_run(plain, typed, AfterRun()).folder == tmp_path / "out/mine"
    bare = RunArguments(recipe="quickstart")
    moved = load_recipe("quickstart", [f"output_dir={tmp_path / 'other'}"])
    assert around_run(moved, bare, AfterRun()).folder == tmp_path / "other/quickstart"
    assert around_run(plain, bare, AfterRun()).folder == Path("runs/quickstart")


def test_b080_a_terminal_that_was_closed_keeps_the_machine_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rented = instance.make(tmp_path / "i")
    for name, value in rented.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CI", raising=False)
    around = AroundRun(
        loaded=load_recipe("quickstart"), folder=write_run(rented.data_disk / "runs/job"), asked=SHUTDOWN
    )
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        around.follow(0, "done", by_hand=False)
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), gone.fileno())  # what is left in it has somewhere to go
    assert rented.calls == ["called: "]

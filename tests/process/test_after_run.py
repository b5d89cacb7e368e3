"""After a run: the order of events, both meanings of then, and every reason not to switch a machine off."""

import json
import threading
from pathlib import Path

import pytest

from launcher.errors import BadValue
from launcher.process.after_run import AfterRun, Ended, announce, follow, is_whole, read_after_run, verified
from launcher.process.switch_off import CANCEL_FILE, hindrance
from tests import instance
from tests.instance import Instance

HEADER = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def write_weights(path: Path, *, cut: int = 0) -> Path:
    """A real safetensors file of one tensor, its end cut off by so many bytes."""
    head = json.dumps(HEADER).encode()
    data = len(head).to_bytes(8, "little") + head + bytes(8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data[: len(data) - cut])
    return path


def write_run(folder: Path, *, cut: int = 0) -> Path:
    """A finished run's folder, as far as it is looked at."""
    write_weights(folder / "final/adapter_model.safetensors", cut=cut)
    (folder / "final/launcher.json").write_text("{}")
    (folder / "summary.json").write_text(json.dumps({"quality": {"accuracy": 0.8123}}))
    return folder


@pytest.fixture
def rented(tmp_path: Path) -> Instance:
    return instance.make(tmp_path / "i")


@pytest.fixture
def run(rented: Instance) -> Path:
    return write_run(rented.data_disk / "runs/job")


def after(rented: Instance, asked: AfterRun, ended: Ended) -> list[str]:
    said: list[str] = []
    environ = {key: value for key, value in rented.environ.items() if key != "CI"}
    follow(asked, ended, environ, said.append)
    return said


SHUTDOWN = AfterRun(then="shutdown", grace_s=0.0)


def test_b080_nothing_follows_unless_it_is_asked_for(rented: Instance, run: Path) -> None:
    assert read_after_run({}, set()) == AfterRun()
    assert after(rented, AfterRun(), Ended(folder=run, exit_code=0)) == []
    assert rented.calls == []


def test_b080_a_finished_verified_run_switches_off_by_the_platforms_own_command(
    rented: Instance, run: Path
) -> None:
    said = after(rented, SHUTDOWN, Ended(folder=run, exit_code=0))
    assert rented.calls == ["called: "]
    assert said[-1] == f"after the run: {rented.root}/usr/bin/shutdown"


def test_b080_the_copy_is_whole_and_the_message_sent_before_the_machine_goes(
    rented: Instance, run: Path, tmp_path: Path
) -> None:
    asked = AfterRun(then="shutdown", grace_s=0.0, copy_to=rented.root / "root/autodl-fs", notify=True)
    said = after(rented, asked, Ended(folder=run, exit_code=0))
    order = ["copied" if "read back" in line else "told" if "message" in line else "" for line in said]
    assert [each for each in order if each] == ["copied", "told"]
    assert said[-1].endswith("shutdown")
    assert (rented.root / "root/autodl-fs/job.tar").is_file()


@pytest.mark.parametrize(("then_on", "calls"), [("success", []), ("always", ["called: "])])
def test_b080_a_crash_is_and_and_or_semicolon(
    rented: Instance, run: Path, then_on: str, calls: list[str]
) -> None:
    asked = read_after_run({"then": "shutdown", "then_on": then_on, "grace": "0"}, set())
    said = after(rented, asked, Ended(folder=run, exit_code=1, words="failed"))
    assert rented.calls == calls
    assert "the run did not finish: failed" in said[0]


def test_b080_a_run_whose_model_is_cut_short_does_not_count_as_finished(rented: Instance) -> None:
    folder = write_run(rented.data_disk / "runs/job", cut=3)
    said = after(rented, SHUTDOWN, Ended(folder=folder, exit_code=0))
    assert rented.calls == []
    assert "no whole weights: adapter_model.safetensors" in said[0]


def test_b080_a_copy_that_failed_keeps_the_machine_on(rented: Instance, run: Path) -> None:
    blocked = rented.root / "root/file"
    blocked.write_text("no folder")
    asked = AfterRun(then="shutdown", grace_s=0.0, copy_to=blocked)
    said = after(rented, asked, Ended(folder=run, exit_code=0))
    assert rented.calls == []
    assert "not safe" in said[-1]


def test_b080_the_cancel_file_keeps_the_machine_on(rented: Instance, run: Path) -> None:
    (run / CANCEL_FILE).touch()
    said = after(rented, AfterRun(then="shutdown", grace_s=60.0), Ended(folder=run, exit_code=0))
    assert said[-1].endswith("cancelled")
    assert rented.calls == []


def test_b080_a_cancel_file_made_during_the_grace_counts(rented: Instance, run: Path) -> None:
    asked = AfterRun(then="shutdown", grace_s=60.0)
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "to cancel" in line:
            threading.Timer(0.1, (run / CANCEL_FILE).touch).start()

    follow(asked, Ended(folder=run, exit_code=0), rented.environ, say)
    assert said[-1].endswith("cancelled")


def test_an_old_cancel_file_is_another_runs_word(rented: Instance, run: Path) -> None:
    (run / CANCEL_FILE).touch()
    announce(SHUTDOWN, run, rented.environ, dry=True)
    assert (run / CANCEL_FILE).exists()
    announce(SHUTDOWN, run, rented.environ)
    assert not (run / CANCEL_FILE).exists()


def test_b080_who_stopped_the_run_by_hand_is_sitting_there(rented: Instance, run: Path) -> None:
    asked = AfterRun(then="shutdown", then_on="always", grace_s=0.0)
    said = after(rented, asked, Ended(folder=run, exit_code=75, by_hand=True))
    assert rented.calls == []
    assert "by hand" in said[-1]


@pytest.mark.parametrize("ci", ["1", "true"])
def test_b080_never_in_ci(rented: Instance, run: Path, ci: str) -> None:
    said: list[str] = []
    follow(SHUTDOWN, Ended(folder=run, exit_code=0), rented.environ | {"CI": ci}, said.append)
    assert rented.calls == []
    assert "CI machine" in said[-1]


def test_b080_never_on_a_machine_that_is_not_surely_rented(rented: Instance, tmp_path: Path) -> None:
    plain = {"LAUNCHER_ROOT": str(tmp_path / "plain"), "PATH": str(rented.root / "usr/bin")}
    assert "no rented machine" in str(hindrance(plain))
    assert "too little" in str(hindrance(plain | {"AutoDLRegion": "copied from elsewhere"}))
    assert hindrance(rented.environ) is None


def test_b080_a_container_without_the_command_says_so_before_and_after(rented: Instance, run: Path) -> None:
    (rented.root / "usr/bin/shutdown").unlink()
    assert "NOT switched off: there is no /usr/bin/shutdown" in announce(SHUTDOWN, run, rented.environ)[0]
    assert "no /usr/bin/shutdown" in after(rented, SHUTDOWN, Ended(folder=run, exit_code=0))[-1]


def test_a_shutdown_that_fails_says_that_it_costs_on(rented: Instance, run: Path) -> None:
    (rented.root / "usr/bin/shutdown").write_text("#!/bin/sh\necho not permitted >&2\nexit 4\n")
    assert "it failed (not permitted)" in after(rented, SHUTDOWN, Ended(folder=run, exit_code=0))[-1]


def test_a_shutdown_on_path_counts_only_below_the_same_root(rented: Instance) -> None:
    (rented.root / "usr/bin/shutdown").rename(rented.root / "bin/shutdown")
    assert hindrance(rented.environ) is None
    assert hindrance(rented.environ | {"PATH": "/usr/sbin:/sbin"}) is not None


def test_what_will_happen_is_said_before(rented: Instance, run: Path) -> None:
    asked = AfterRun(
        then="shutdown", then_on="always", copy_to=rented.root / "root/autodl-fs", notify=True, grace_s=5
    )
    said = "\n".join(announce(asked, run, rented.environ | {"AUTODL_TOKEN": "x"}))
    for words in ("job.tar", "a message is sent", "however it ends, 5 s", f"touch {run / CANCEL_FILE}"):
        assert words in said
    assert announce(AfterRun(), run, rented.environ) == []
    assert "--then shutdown is not given" in announce(AfterRun(then_on="always"), run, rented.environ)[0]


@pytest.mark.parametrize(
    "options", [{"then": "poweroff"}, {"then": "shutdown", "then_on": "maybe"}, {"grace": "soon"}]
)
def test_a_word_that_is_no_choice_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(BadValue, match="cannot be meant"):
        read_after_run(options, set())


def test_whole_and_broken_weights_are_told_apart(tmp_path: Path) -> None:
    assert is_whole(write_weights(tmp_path / "whole.safetensors"))
    assert not is_whole(write_weights(tmp_path / "cut.safetensors", cut=1))
    for name, data in (
        ("empty", b""),
        ("text", b"not weights at all"),
        ("none", (2).to_bytes(8, "little") + b"{}"),
    ):
        (tmp_path / name).write_bytes(data)
        assert not is_whole(tmp_path / name)


def test_a_run_without_a_model_is_not_verified(tmp_path: Path) -> None:
    assert "is not complete" in str(verified(Ended(folder=tmp_path, exit_code=0)))

"""Trackers: real ones where installed, Accelerate's kind where not; none can hold up or end a run."""

import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.recipe.tracking import TrackingOptions, missing_trackers
from launcher.train.metrics_log import MetricsLog
from launcher.train.outlet import Guarded, event_folder, named
from launcher.train.tracker import Threaded, accelerate_tracker, open_trackers, options_of
from launcher.train.tracker_mode import SERVICES, choose, unreachable

HAND = (
    "by hand: make an environment, pip install wandb swanlab trackio beside the project, run this file there"
)


class Kept:
    """A tracker with Accelerate's interface that keeps what it is told, and waits or fails where asked to."""

    def __init__(self, *, fails_at: str = "", gate: threading.Event | None = None) -> None:
        self.fails_at, self.gate = fails_at, gate
        self.told: list[Any] = []

    def _at(self, name: str) -> None:
        if self.gate is not None and name == "start":
            self.gate.wait()
        if self.fails_at == name:
            raise RuntimeError(f"no network in {name}\nand a long story")

    def start(self) -> None:
        self._at("start")

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.told.append(values)

    def log(self, values: dict[str, float], step: int) -> None:
        self._at("log")
        self.told.append((step, values))

    def finish(self) -> None:
        self._at("finish")
        self.told.append("finished")


@pytest.fixture
def said() -> list[str]:
    return []


def test_what_is_logged_arrives_in_order_and_is_finished(said: list[str]) -> None:
    tracker = Kept()
    threaded = Threaded("kept", lambda: tracker, {"recipe": {"seed": 1}}, said.append)
    for step in (1, 2):
        threaded.log({"train/loss": 1.0 / step}, step)
    threaded.close()
    assert tracker.told == [
        *({"recipe": {"seed": 1}}, (1, {"train/loss": 1.0}), (2, {"train/loss": 0.5}), "finished"),
    ]
    assert said == []


@pytest.mark.parametrize("place", ["start", "log", "finish"])
def test_a_failing_tracker_is_told_once_and_the_run_goes_on(said: list[str], place: str) -> None:
    threaded = Threaded("kept", lambda: Kept(fails_at=place), {}, said.append)
    for step in range(1, 50):
        threaded.log({"train/loss": 1.0}, step)
    threaded.close()
    assert not threaded.thread.is_alive()
    assert said == [f"kept failed and is left out from here on: RuntimeError: no network in {place}"]


def test_a_tracker_that_hangs_is_left_behind(said: list[str]) -> None:
    gate = threading.Event()
    threaded = Threaded("kept", lambda: Kept(gate=gate), {}, said.append)
    threaded.log({"train/loss": 1.0}, 1)
    threaded.close(wait_s=0.2)
    assert said == ["kept did not finish within 0 s and is left; metrics.jsonl is whole"]
    gate.set()
    threaded.thread.join()


def test_a_metrics_log_hands_numbers_to_every_outlet(tmp_path: Path, said: list[str]) -> None:
    tracker = Kept()
    threaded = Threaded("kept", lambda: tracker, {}, said.append)
    log = MetricsLog(tmp_path, is_first=True, total_steps=2, start=0, board=False, outlets=[threaded])
    log.write({"step": 1, "loss": 0.5, "currency": "CNY", "skipped_steps": 0})
    log.write({"step": 1, "eval_accuracy": 0.75})
    log.close()
    assert tracker.told[:2] == [
        (1, {"train/loss": 0.5, "train/skipped_steps": 0}),
        (1, {"eval/accuracy": 0.75}),
    ]


def test_a_guarded_outlet_is_left_out_after_its_first_failure(said: list[str]) -> None:
    class Full:
        def log(self, values: Mapping[str, float], step: int) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            raise AssertionError("closed after it failed")

    guarded = Guarded("TensorBoard", Full(), said.append)
    guarded.log({}, 1)
    guarded.log({}, 2)
    guarded.close()
    assert len(said) == 1 and "No space left on device" in said[0]


def test_event_files_lie_in_the_run_folder_under_grouped_names(tmp_path: Path) -> None:
    assert event_folder(tmp_path) == tmp_path
    assert named({"step": 3, "loss": 1, "eval_loss": 2.0, "currency": "CNY"}) == {
        "train/loss": 1,
        "eval/loss": 2.0,
    }


def test_a_missing_package_says_what_to_install() -> None:
    options = TrackingOptions(report_to=("tensorboard", "wandb", "swanlab", "trackio"))
    problems = [problem.render() for problem in missing_trackers(options)]
    absent = [name for name in options.remote if importlib.util.find_spec(name) is None]
    assert len(problems) == len(absent)
    for name, problem in zip(absent, problems, strict=True):
        assert f"{name} is not installed" in problem and f"pip install {name}" in problem


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    yield tmp_path


def test_without_a_key_a_tracker_is_offline_and_says_how_to_log_in(home: Path) -> None:
    for name, service in SERVICES.items():
        found = choose(service, "auto", {})
        assert found.name == "offline" and f"type {name} login" in found.why


def test_a_key_in_its_file_is_found_by_its_host_and_not_read(home: Path) -> None:
    (home / ".netrc").write_text("machine 127.0.0.1\n  login user\n  password nothing\n")
    (home / ".netrc").chmod(0o600)
    found = choose(SERVICES["wandb"], "auto", {"WANDB_BASE_URL": "http://127.0.0.1:9"})
    assert found.name == "offline" and "127.0.0.1 cannot be reached" in found.why


def test_the_host_is_the_installed_packages_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """wandb sends to another host since 0.31; a key of before still stands under the old one."""
    (tmp_path / "own_address.py").write_text("URL = 'http://127.0.0.1:9'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_address", raising=False)
    (home / ".netrc").write_text("machine api.wandb.ai\n  login user\n  password nothing\n")
    (home / ".netrc").chmod(0o600)
    here = replace(SERVICES["wandb"], own_url="own_address:URL")
    assert "127.0.0.1 cannot be reached" in choose(here, "auto", {}).why
    nowhere = replace(here, own_url="no_such_package_here:URL", url="http://127.0.0.2:9")
    assert "127.0.0.2 cannot be reached" in choose(nowhere, "auto", {}).why


def test_the_persons_own_word_goes_before_any_look(home: Path) -> None:
    service = SERVICES["wandb"]
    assert choose(service, "online", {}).name == "online"
    assert choose(service, "online", {"WANDB_MODE": "disabled"}).name == "disabled"


def test_a_host_that_answers_is_reached_also_through_a_proxy() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert unreachable(address, {}) == ""
        assert unreachable("https://nowhere.invalid", {"HTTPS_PROXY": address}) == ""
    assert "cannot be reached" in unreachable(address, {})


def test_accelerate_knows_every_tracker_that_a_recipe_may_name() -> None:
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    assert {"wandb", "swanlab", "trackio"} <= LOGGER_TYPE_TO_CLASS.keys()
    assert accelerate_tracker("trackio", "project", {"name": "first"}).run_name == "project"


@pytest.mark.parametrize("name", ["wandb", "swanlab", "trackio"])
def test_a_real_tracker_keeps_the_run_without_a_network(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed ({HAND})")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    opened = open_trackers(
        (name,), folder=tmp_path, project="tried", mode="offline", config={"recipe": {}}, say=said.append
    )
    for tracker in opened:
        tracker.log({"train/loss": 0.5}, 1)
        tracker.close()
    os.environ.pop("WANDB_SERVICE", None)  # its process's address, which it leaves in ours
    assert [line for line in said if "failed" in line or "did not finish" in line] == []
    assert any(path.is_file() and path.stat().st_size for path in tmp_path.rglob("*"))


def test_a_tracker_that_does_not_send_says_how_to_send_later(said: list[str], tmp_path: Path) -> None:
    found = options_of("swanlab", tmp_path / "first", "offline", said.append)
    assert found == {"name": "first", "mode": "offline", "log_dir": str(tmp_path / "first" / "swanlab")}
    assert said == [
        f"swanlab: offline (tracker_mode=offline); later: swanlab sync {tmp_path}/first/swanlab/run-*"
    ]

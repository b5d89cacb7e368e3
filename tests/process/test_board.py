"""Curves where a panel looks: linked once, nothing written over, nobody's board stopped."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.hardware.ports import free_port
from launcher.process import board
from launcher.process.board import link_run, show_run
from tests import instance


@pytest.fixture
def panel(tmp_path: Path) -> Path:
    folder = tmp_path / "tf-logs"
    folder.mkdir()
    return folder


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on, with a free one behind it."""
    with socket.create_server(("0.0.0.0", free_port())) as held:
        yield held.getsockname()[1]


def test_b081_the_link_is_made_once(panel: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs/job"
    assert link_run(panel, run) == link_run(panel, run) == panel / "job"
    assert [path.name for path in panel.iterdir()] == ["job"]
    assert (panel / "job").readlink() == run


def test_b081_another_runs_link_and_a_persons_folder_are_not_written_over(
    panel: Path, tmp_path: Path
) -> None:
    (panel / "job").mkdir()
    (panel / "job/events").write_text("mine")
    assert link_run(panel, tmp_path / "a/job") == panel / "job-2"
    assert link_run(panel, tmp_path / "b/job") == panel / "job-3"
    assert link_run(panel, tmp_path / "a/job") == panel / "job-2"
    assert (panel / "job/events").read_text() == "mine"
    (panel / "gone").symlink_to(tmp_path / "nowhere")
    assert link_run(panel, tmp_path / "c/gone") == panel / "gone-2"


def test_a_run_inside_the_panels_folder_needs_no_link(panel: Path) -> None:
    (panel / "job").mkdir()
    assert link_run(panel, panel / "job") == panel / "job"
    assert not (panel / "job").is_symlink()


def test_b081_tensorboard_itself_finds_events_behind_the_link(panel: Path, tmp_path: Path) -> None:
    walk = pytest.importorskip(
        "tensorboard.backend.event_processing.io_wrapper", reason="no tensorboard here"
    )
    run = tmp_path / "runs/job"
    run.mkdir(parents=True)
    (run / "events.out.tfevents.1.host").write_bytes(b"")
    link_run(panel, run)
    assert [Path(each).name for each in walk.GetLogdirSubdirectories(str(panel))] == ["job"]


def test_b081_a_busy_port_is_left_alone_and_the_next_one_named(
    taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "_USUAL_PORTS", range(taken, taken + 20))
    [line] = show_run(tmp_path / "runs/job", {"LAUNCHER_ROOT": str(tmp_path)})
    assert f"--port {taken} " not in f"{line} "
    assert f"port {taken} is held by PID {os.getpid()}" in line
    assert f"tensorboard --logdir {tmp_path / 'runs'}" in line


def test_b081_an_instance_shows_the_tile_and_what_a_board_by_hand_would_cost(tmp_path: Path) -> None:
    rented = instance.make(tmp_path / "i")
    tile, by_hand = show_run(rented.data_disk / "runs/job", rented.environ)
    assert "port 6007" in tile and "this run is 'job'" in tile
    assert (rented.root / "root/tf-logs/job").is_symlink()
    assert "no login stands in front" in by_hand


def test_a_panel_that_cannot_be_written_to_is_no_failure(tmp_path: Path) -> None:
    rented = instance.make(tmp_path / "i")
    logs = rented.root / "root/tf-logs"
    for number in range(1, 4):
        (logs / ("job" if number == 1 else f"job-{number}")).mkdir()
    assert "this run is 'job-4'" in show_run(rented.data_disk / "runs/job", rented.environ)[0]

"""What was typed is a run, or the message says which one is near."""

from pathlib import Path

import pytest

from launcher.cli.main import main
from launcher.errors import BadValue
from launcher.report.places import find_run, labels
from launcher.report.write import report
from tests import instance
from tests.report.writing import step_line, write_run


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        write_run(tmp_path / "runs" / name, [step_line(1), step_line(2)])
    (tmp_path / "runs" / "first" / "checkpoint-2").mkdir()
    return tmp_path / "runs"


def test_a_run_is_named_by_its_path_or_by_its_name_below_runs(runs: Path) -> None:
    assert find_run("runs/first").resolve() == find_run("first").resolve() == runs / "first"


def test_a_run_on_a_rented_machines_data_disk_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rented = instance.make(tmp_path / "instance")
    monkeypatch.setenv("LAUNCHER_ROOT", str(rented.root))
    monkeypatch.chdir(tmp_path)
    write_run(rented.data_disk / "runs/mine", [step_line(1)])
    assert find_run("mine") == rented.data_disk / "runs/mine"
    with pytest.raises(BadValue, match=f"launcher report {rented.data_disk}/runs/mine"):
        find_run("mime")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("runs/frist", "launcher report runs/first"),
        ("runs", "launcher report runs/first runs/second"),
        ("runs/first/metrics.jsonl", "launcher report runs/first"),
        ("runs/first/checkpoint-2", "launcher report runs/first"),
        ("nowhere/at/all", "there is no such run folder"),
        (".", "nothing of a run is in it"),
    ],
)
def test_a_path_beside_a_run_is_refused_with_the_run_that_is_near(runs: Path, typed: str, said: str) -> None:
    with pytest.raises(BadValue) as refused:
        find_run(typed)
    assert said in str(refused.value)


def test_runs_of_one_name_are_told_apart_by_their_folders() -> None:
    assert labels([Path("/a/x/job"), Path("/a/y/job")]) == ["x/job", "y/job"]
    assert labels([Path("/a/x/job"), Path("/a/x/other")]) == ["job", "other"]
    assert labels([Path("/a/x/job")]) == ["job"]


def test_the_command_writes_beside_the_run_and_prints_the_file_alone(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "first"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == str(runs / "first" / "report.html")
    assert "KiB" in said.err
    assert main(["report", "first"]) == 0, "an earlier report is replaced"


def test_several_runs_go_into_one_file_here_and_a_run_named_twice_counts_once(runs: Path) -> None:
    file, text = report(["first", "runs/second", "runs/first/"], None)
    assert file == Path("report.html") and file.is_file()
    assert text.count('class="legend"') and "first, second" in text


def test_nothing_but_an_earlier_report_is_written_over(runs: Path) -> None:
    log = runs / "first" / "metrics.jsonl"
    before = log.read_text()
    for out in (log, runs, runs / "none" / "report.html"):
        with pytest.raises(BadValue):
            report(["first"], out)
    assert log.read_text() == before
    assert [path.name for path in (runs / "first").glob(".*")] == []

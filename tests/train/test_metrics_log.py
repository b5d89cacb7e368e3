"""metrics.jsonl: valid JSON, each step once after a resume."""

import json
import math
from pathlib import Path

import pytest

from launcher.train.metrics_log import CONFUSIONS, FILE, LineFile, MetricsLog, keep_until


def log(folder: Path, start: int, board: bool = False) -> MetricsLog:
    return MetricsLog(folder, is_first=True, total_steps=10, start=start, board=board)


def test_later_lines_and_a_cut_one_are_dropped_on_resume(tmp_path: Path) -> None:
    first = log(tmp_path, 0)
    for step in range(1, 7):
        first.write({"step": step, "loss": 1.0 / step})
    first.write({"step": 4, "eval_loss": 0.5})
    first.close()
    with (tmp_path / FILE).open("a") as file:
        file.write('{"step": 7, "lo')
    again = log(tmp_path, 4)
    again.write({"step": 5, "loss": 9.0})
    again.close()
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 4, 5]
    assert lines[-1]["loss"] == 9.0


def test_b069_a_loss_that_is_not_finite_is_null_and_not_left_out(tmp_path: Path) -> None:
    made = log(tmp_path, 0)
    made.write({"step": 1, "loss": math.nan, "grad_norm": math.inf, "skipped_steps": 1})
    made.close()
    assert json.loads((tmp_path / FILE).read_text()) == {
        "step": 1,
        "loss": None,
        "grad_norm": None,
        "skipped_steps": 1,
    }


def test_other_ranks_write_nothing(tmp_path: Path) -> None:
    made = MetricsLog(tmp_path, is_first=False, total_steps=10, start=0, board=True)
    made.write({"step": 1})
    made.advance(1)
    made.close()
    assert list(tmp_path.iterdir()) == []


def test_numbers_reach_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    made = log(tmp_path, 0, board=True)
    made.write({"step": 3, "loss": 0.25})
    made.write({"step": 3, "eval_accuracy": 0.5})
    made.close()
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("train/loss")] == [(3, 0.25)]
    assert [(e.step, e.value) for e in events.Scalars("eval/accuracy")] == [(3, 0.5)]


def test_nothing_to_keep_is_no_error(tmp_path: Path) -> None:
    keep_until(tmp_path / FILE, 3)
    assert not (tmp_path / FILE).exists()


def test_a_full_disk_loses_lines_is_said_once_and_ends_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / FILE
    full.symlink_to("/dev/full")  # every write to it finds no space
    file = LineFile(full)
    file.write('{"step": 1}\n')
    file.write('{"step": 2}\n')
    assert capsys.readouterr().err.count("No space left on device") == 1
    full.unlink()
    full.touch()
    file._begin_again()
    file.write('{"step": 3}\n')
    file.close()
    assert [json.loads(line) for line in full.read_text().split("\n") if line] == [{"step": 3}]


def test_a_resumed_run_keeps_the_confusions_of_the_steps_that_it_keeps(tmp_path: Path) -> None:
    first = log(tmp_path, 0)
    for step in (2, 4, 6):
        first.keep_confusions({"step": step, "labels": ["a", "b"], "counts": [[0, 1, step]]})
    first.close()
    log(tmp_path, 4).close()
    kept = [json.loads(line)["step"] for line in (tmp_path / CONFUSIONS).read_text().splitlines()]
    assert kept == [2, 4]

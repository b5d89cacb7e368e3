"""The report: whole, self-contained, escaped, honest about what it leaves out."""

import json
from pathlib import Path

from tests.report.html_check import read
from tests.report.writing import page_of, step_line, write_lines, write_run

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
CONFUSION = {"step": 4, "labels": ["good", "bad"], "counts": [[0, 0, 7], [0, 1, 3], [1, 0, 2], [1, 1, 8]]}


def finished(folder: Path) -> Path:
    """Every file that a finished classifier leaves."""
    lines = [step_line(step) for step in range(1, 6)]
    lines.insert(4, {"step": 4, "epoch": 0.1, "eval_loss": 0.5, "eval_accuracy": 0.75, "eval_seconds": 1.0})
    memory = {
        "predicted": {
            "peak_bytes": 2**30,
            "phases": {"forward": 2**29, "backward": 2**30},
            "standing": "derived",
        },
        "measured": {"phases": {"forward and backward": 2**30, "load": 2**28}, "peak_allocated_bytes": 2**30},
    }
    run = write_run(
        folder,
        lines,
        summary={
            "steps": 5,
            "seconds": 12.0,
            "quality": {"accuracy": 0.75},
            "memory": memory,
            "best": {"step": 4},
        },
        plan={"recipe_name": "job", "backend": "single_gpu", "precision": "fp32", "step": {"num_ranks": 1}},
        recipe="training:\n  learning_rate: 0.002\ntask: classification\n",
        environment={"packages": {"torch": "2.13"}, "variables": {"HF_TOKEN": "hf_" + "a" * 30}},
    )
    write_lines(folder / "confusions.jsonl", [CONFUSION])
    write_lines(folder / "history.jsonl", [{"event": "started", "step": 0, "time": 1.8e9, "total_steps": 5}])
    return run


def test_a_finished_run_has_every_section_and_loads_nothing(tmp_path: Path) -> None:
    found = read(page_of(finished(tmp_path / "first")))
    assert found.faults == []
    assert found.texts["h2"] == [
        *("Runs", "Curves", "Quality", "Which class was taken for which"),
        *("Memory, predicted and measured", "Events", "Configuration"),
    ]
    words = found.words()
    for said in ("finished: 5 steps in 12 s", "Loss", "70.0%", "Gradient norm", "started", "0.002"):
        assert said in words, said


def test_predicted_forward_and_backward_stand_beside_what_was_measured_of_both(tmp_path: Path) -> None:
    words = read(page_of(finished(tmp_path / "first"))).words()
    assert "forward and backward: predicted 1.0 GiB, measured 1.0 GiB" in words


def test_every_picture_has_a_title_a_description_and_a_table(tmp_path: Path) -> None:
    found = read(page_of(finished(tmp_path / "first")))
    pictures = [
        attributes for tag, attributes in found.tags if tag == "svg" and attributes.get("role") == "img"
    ]
    assert len(pictures) >= 6
    assert all(len((picture["aria-labelledby"] or "").split()) == 2 for picture in pictures)
    assert found.count("desc") == len(pictures)
    assert found.texts["summary"].count("Values as a table") == len(pictures) - 1  # memory's table is open


def test_names_from_data_are_text_and_never_markup(tmp_path: Path) -> None:
    run = finished(tmp_path / "first")
    write_lines(run / "confusions.jsonl", [CONFUSION | {"labels": [HOSTILE, "bad"]}])
    write_lines(
        run / "history.jsonl",
        [{"event": HOSTILE, "step": 1, "why": HOSTILE}],
    )
    (run / "command.txt").write_text(HOSTILE)
    (run / "recipe.yaml").write_text(f"summary: {json.dumps(HOSTILE)}\n? {json.dumps(HOSTILE)}\n: 1\n")
    hostile_folder = run.rename(tmp_path / "<img src=x onerror=alert(3)>")
    write_lines(
        hostile_folder / "metrics.jsonl",
        [
            step_line(1),
            step_line(2),
            {"step": 2, f"eval_{HOSTILE}": 0.5},
            {"step": 3, f"eval_{HOSTILE}": 0.6},
        ],
    )
    text = page_of(hostile_folder)
    found = read(text)
    assert found.faults == []
    assert found.count("img") == 0
    assert [attributes.get("type") for tag, attributes in found.tags if tag == "script"][-1] is None
    assert sum(tag == "script" and "type" not in attributes for tag, attributes in found.tags) == 1
    assert HOSTILE in found.words()


def test_secrets_are_hidden_even_where_an_old_run_kept_them(tmp_path: Path) -> None:
    run = finished(tmp_path / "first")
    secret = "hf_" + "b" * 30
    (run / "command.txt").write_text(f"HF_TOKEN={secret} launcher run job\n")
    text = page_of(run)
    assert secret not in text and "hf_" + "a" * 30 not in text
    assert "(redacted)" in text


def test_two_runs_share_charts_and_show_what_differs(tmp_path: Path) -> None:
    first, second = finished(tmp_path / "first"), finished(tmp_path / "second")
    (second / "recipe.yaml").write_text("training:\n  learning_rate: 0.004\ntask: classification\n")
    found = read(page_of(first, second))
    assert found.faults == []
    assert "Settings that differ" in found.words() and "training.learning_rate" in found.words()
    rows = found.words()
    assert "0.004" in rows and "0.002" in rows
    loss = next(json.loads(text) for text in found.texts["script"] if '"first"' in text)
    assert [each["name"] for each in loss["series"]] == [
        *("first", "first (evaluation)", "second", "second (evaluation)"),
    ]


def test_a_running_run_with_a_half_written_line_is_shown_up_to_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "going", [])
    write_lines(run / "metrics.jsonl", [step_line(1), step_line(2)], end='{"step": 3, "lo')
    write_lines(run / "history.jsonl", [{"event": "started", "step": 0, "total_steps": 40}])
    words = read(page_of(run)).words()
    assert "running, or ended just now: step 2 of 40" in words
    assert "cannot be read" not in words


def test_a_line_that_is_broken_in_the_middle_is_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "torn", [step_line(1)])
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text + '{"step": 2, "l\n' + json.dumps(step_line(3)) + "\n")
    found = read(page_of(run))
    assert found.faults == []
    assert "metrics.jsonl: 1 line(s) cannot be read" in found.words()


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    run = write_run(tmp_path / "lost", [step_line(1)])
    events = [
        {"event": "started", "step": 0},
        {"event": "failed", "step": 1, "why": "NonFinite: loss is nan"},
    ]
    write_lines(run / "history.jsonl", events)
    assert "ended at step 1: NonFinite: loss is nan" in read(page_of(run)).words()


def test_b069_steps_without_a_finite_loss_are_marked_and_told(tmp_path: Path) -> None:
    lines = [step_line(1), step_line(2, loss=None, skipped_steps=1), step_line(3, skipped_steps=1)]
    found = read(page_of(write_run(tmp_path / "poisoned", lines)))
    assert "✕ marks 1 step(s) without a finite value" in found.words()
    assert "1 step(s) skipped since the line before: not finite" in found.words()


def test_b069_a_run_of_nothing_but_nan_says_so_instead_of_an_empty_chart(tmp_path: Path) -> None:
    run = write_run(tmp_path / "nan", [step_line(step, loss=None) for step in (1, 2, 3)])
    assert ": none of 3 logged values is a finite number" in read(page_of(run)).words()


def test_a_run_folder_without_metrics_is_a_report_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "early"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps({"recipe_name": "job", "backend": "zero2"}))
    found = read(page_of(folder))
    assert found.faults == []
    assert "nothing is logged yet" in found.words() and "No step is logged" in found.words()


def test_files_that_hold_anything_are_left_out_and_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "odd", [step_line(1), {"step": "five", "loss": 1}, {"step": 2, "loss": "low"}])
    (run / "summary.json").write_text('{"memory": 5, "quality": [1], "best": "x", "plan": null, "steps": {}}')
    (run / "plan.json").write_text("[1, 2]")
    (run / "environment.json").write_text("{nothing")
    (run / "recipe.yaml").write_text("a: [1\nb: }")
    lines = [
        {"step": 1, "labels": 3, "counts": "x"},
        {"step": 1, "labels": ["a"], "counts": [[0, 9, 1], [0]]},
    ]
    write_lines(run / "confusions.jsonl", lines)
    found = read(page_of(run))
    assert found.faults == []
    assert (
        "environment.json cannot be read" in found.words() and "recipe.yaml cannot be read" in found.words()
    )


def test_a_hundred_thousand_steps_stay_below_a_megabyte_and_keep_the_spike(tmp_path: Path) -> None:
    lines = [step_line(step, loss=999.0 if step == 77_777 else 1.0 + step % 3) for step in range(1, 100_001)]
    text = page_of(write_run(tmp_path / "long", lines))
    assert len(text.encode()) < 1_000_000
    found = read(text)
    points = next(json.loads(text) for text in found.texts["script"] if '"long"' in text)["series"][0][
        "points"
    ]
    assert [77_777, 999] in points
    assert points[0][0] == 1 and points[-1][0] == 100_000
    assert "thinned: lowest and highest of each stretch are kept" in found.words()


def test_many_classes_are_told_by_their_mix_ups(tmp_path: Path) -> None:
    run = write_run(tmp_path / "wide", [step_line(1)])
    names = [f"class {number}" for number in range(77)]
    counts = [[place, place, 10] for place in range(77)] + [[3, 5, 6], [4, 9, 2]]
    write_lines(run / "confusions.jsonl", [{"step": 1, "labels": names, "counts": counts}])
    words = read(page_of(run)).words()
    assert "the most frequent mix-ups of 77 classes" in words
    assert "37.5%" in words  # 6 of the 16 rows of class 3

"""Every finished run leaves what was predicted beside what was measured, and `launcher plan` shows it."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.cli.main import main
from tests.train.conftest import WriteRecipe
from tests.warm_runs import trained_forked


def finished(recipe: Path, backend: str, **variables: str) -> dict[str, Any]:
    trained_forked(backend, "--recipe", str(recipe), "--name", "first", **variables)
    found: dict[str, Any] = json.loads((recipe.parent / "runs" / "first" / "summary.json").read_text())
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def check_what_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log, the history, the classes that were mixed up, and a report of all of it."""
    steps = [line for line in lines(run / "metrics.jsonl") if "loss" in line]
    assert all(line["memory_now_bytes"] > 0 and line["elapsed_s"] > 0 for line in steps)
    assert all("mfu" not in line and "cost_low" not in line for line in steps), "no card, no figure"
    history = lines(run / "history.jsonl")
    assert [(line["event"], line["step"]) for line in history] == [("started", 0), ("ended", 4)]
    confused = lines(run / "confusions.jsonl")
    assert [line["step"] for line in confused] == [2, 4]
    assert {sum(count[2] for count in line["counts"]) for line in confused} == {23}
    assert main(["report", str(run)]) == 0
    file = Path(capsys.readouterr().out.strip())
    assert file == run / "report.html" and "finished: 4 steps" in file.read_text()


def test_a_run_keeps_prediction_and_measurement_and_the_next_plan_shows_them(
    classifier: WriteRecipe, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = classifier(max_steps=4, eval_steps=2, save_steps=2)
    found = finished(recipe, "single_gpu")
    memory, speed = found["memory"], found["throughput"]
    assert memory["predicted"]["peak_bytes"] == max(memory["predicted"]["phases"].values()) > 0
    assert {"load", "forward and backward", "optimizer", "evaluate", "save"} <= memory["measured"][
        "phases"
    ].keys()
    assert memory["measured"]["peak_resident_bytes"] >= memory["measured"]["resident_at_start_bytes"] > 0
    assert memory["predicted"]["standing"].startswith(("validated on", "derived"))
    assert speed["samples_per_s"] > 0 and speed["predicted_samples_per_s"] is None
    assert found["plan"]["micro_batch_size"] * found["plan"]["accumulation_steps"] == 12
    check_what_is_told(recipe.parent / "runs" / "first", capsys)
    assert main(["plan", str(recipe)]) == 0
    said = capsys.readouterr().out
    assert f"record    {recipe.parent / 'runs' / 'first'}: single_gpu x 1" in said and "predicted" in said


def test_a_model_that_cannot_be_estimated_is_trained_and_says_why(
    classifier: WriteRecipe, material: Path, tmp_path: Path
) -> None:
    """An ALBERT shares its layers: no closed form is known for it here."""
    from tests import tiny

    folder = tiny.write_bert(tmp_path / "albert", kind="albert", embedding_size=32)
    recipe = classifier(max_steps=2)
    recipe.write_text(recipe.read_text().replace(str(material / "bert"), str(folder)))
    found = finished(recipe, "single_gpu")
    assert found["steps"] == 2
    assert "albert" in found["memory"]["predicted"]["why_not"]

"""`launcher compare` as it is typed: planned, run, gone on with, and what fails is told."""

import json
from pathlib import Path

import pytest

from tests import tiny
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    tiny.write_bert(folder / "bert")
    tiny.write_csv(folder / "train.csv", 40)
    path = folder / "job.yaml"
    path.write_text(
        f"""task: classification
model: {{model_name_or_path: {folder / "bert"}}}
data: {{train_file: {folder / "train.csv"}, eval_fraction: 0.3, max_length: 40}}
training: {{global_batch_size: 8, max_steps: 2, learning_rate: 1e-3, precision: fp32}}
output_dir: {folder / "runs"}
"""
    )
    return path


def test_a_plan_names_what_trains_and_what_is_refused(recipe: Path, run_verb: Run) -> None:
    varied = ["--vary", "adapter.method=full,lora,nonsense", "--plan", "--json"]
    code, out, _ = run_verb("compare", str(recipe), *varied)
    full, lora, nonsense = json.loads(out)["rows"]
    assert code == 1 and full["trained_parameters"] > lora["trained_parameters"] > 0
    assert full["predicted_bytes"] > 0 and "nonsense" in nonsense["why"]


def test_phases_are_planned_by_what_opens(recipe: Path, run_verb: Run) -> None:
    varied = "freeze.schedule={0: head},{0: head, 1: top 1 block},{}"
    code, out, _ = run_verb("compare", str(recipe), "--vary", varied, "--plan", "--json", "max_steps=null")
    counts = [row["trained_parameters"] for row in json.loads(out)["rows"]]
    assert code == 0 and counts == sorted(set(counts))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing is varied"),
        (["--vary", "adapter.method"], "no key with values"),
        (["--vary", "a=1,2", "--seeds", "x"], "--seeds"),
    ],
)
def test_what_is_missing_is_said(words: list[str], said: str, recipe: Path, run_verb: Run) -> None:
    code, out, err = run_verb("compare", str(recipe), *words)
    assert code == 2 and said in err and not out


@pytest.mark.slow
def test_cells_are_run_a_failed_one_does_not_end_it_and_finished_ones_are_kept(
    recipe: Path, run_verb: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    typed = ["compare", str(recipe), "--vary", "adapter.method=prefix,ia3", "--json"]
    code, out, err = run_verb(*typed)
    prefix, ia3 = json.loads(out)["rows"]
    assert code == 1 and "key-value cache" in prefix["why"] and prefix["quality"] is None
    assert ia3["why"] == "" and ia3["measured_bytes"] > 0 and 0 <= ia3["quality"] <= 1
    folder = recipe.parent / "runs" / "compare-job"
    assert (folder / "comparison.svg").read_text().startswith("<svg")
    before = (folder / "method=ia3" / "summary.json").stat().st_mtime_ns
    code, out, err = run_verb(*typed)
    assert "finished before" in err and json.loads(out)["rows"][1] == ia3
    assert (folder / "method=ia3" / "summary.json").stat().st_mtime_ns == before

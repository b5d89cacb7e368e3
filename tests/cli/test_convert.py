"""`launcher convert`: says whether and how a run goes on elsewhere; the line that it prints is true."""

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.train.checkpoint_files import MANIFEST, entry

RECIPE = """task: classification
model: {model_name_or_path: google-bert/bert-base-uncased}
data: {train_file: train.csv}
training: {global_batch_size: 12, per_device_train_batch_size: 3}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with two checkpoints."""
    run = tmp_path / "a run"
    for step in (2, 4):
        checkpoint = run / f"checkpoint-{step}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "state").write_bytes(b"weights")
        facts = {"step": step, "backend": "single_gpu", "num_ranks": 1}
        files = {"state": entry(checkpoint / "state")}
        (checkpoint / MANIFEST).write_text(json.dumps(facts | {"files": files}))
    (run / "recipe.yaml").write_text(RECIPE)
    return run


def test_the_line_to_type_and_what_changes(folder: Path, run_verb: Any) -> None:
    code, out, _ = run_verb("convert", str(folder), "--to", "zero2", "--gpus", "2")
    assert code == 0
    assert "checkpoint-4: whole" in out and "from single_gpu on 1 rank(s) to zero2 on 2" in out
    assert "global batch 12 = 3 rows x 2 accumulated x 2 rank(s)" in out
    assert f"--backend zero2 --gpus 2 --output_dir {folder.parent} --name '{folder.name}' --resume" in out


def test_one_that_is_not_whole_is_passed_over(folder: Path, run_verb: Any) -> None:
    (folder / "checkpoint-4" / "state").write_bytes(b"WEIGHTS")
    code, out, _ = run_verb("convert", str(folder))
    assert code == 0 and "checkpoint-2: whole" in out
    (folder / "checkpoint-2" / MANIFEST).unlink()
    code, _, err = run_verb("convert", str(folder))
    assert code == 1 and "checkpoint-2 is not whole" in err


def test_ranks_that_do_not_divide_the_batch_are_refused(folder: Path, run_verb: Any) -> None:
    code, _, err = run_verb("convert", str(folder), "--to", "zero3", "--gpus", "5")
    assert code == 2 and "12 rows do not divide evenly over 5 ranks" in err


def test_no_such_run_is_told(tmp_path: Path, run_verb: Any) -> None:
    code, _, err = run_verb("convert", str(tmp_path / "absent"))
    assert code == 1 and "there is no checkpoint here" in err

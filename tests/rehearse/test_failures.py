"""A rehearsal that finds a mistake says where, shows the run's own words, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.rehearse.conftest import Rehearse, assert_nothing_left, marked


def test_targets_that_the_architecture_has_not(rehearse: Rehearse) -> None:
    done = rehearse("lora_7b_3090", "adapter.lora_target_modules=[q_proj]")
    assert done.returncode == 1
    assert "FAILED at stage 'run'" in done.stdout
    assert "no linear layer of this model matches 'q_proj'" in done.stdout
    assert "query_key_value" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_data_without_labels(rehearse: Rehearse, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("text,mood\nhello there,1.5\nbye now,2.5\n")
    done = rehearse("quickstart", f"data.train_file={data}", "--json")
    assert done.returncode == 1
    verdict = json.loads(done.stdout)
    assert (verdict["passed"], verdict["failed_stage"]) == (False, "run")
    assert "while building data, model, adapter and backend" in verdict["message"]
    assert "no column for label; the columns are: text, mood" in verdict["message"]


def test_batch_that_the_ranks_cannot_make(rehearse: Rehearse) -> None:
    done = rehearse("quickstart", "training.global_batch_size=7", "--backend", "zero2", "--gpus", "2")
    assert done.returncode == 1
    assert "FAILED at stage 'recipe'" in done.stderr
    assert "7 rows do not divide evenly over 2 ranks" in done.stderr


def test_precision_that_the_named_card_has_not(rehearse: Rehearse) -> None:
    done = rehearse("quickstart", "hardware.gpu=v100_16", "training.precision=bf16", "device=cuda")
    assert done.returncode == 1
    assert "FAILED at stage 'shrink'" in done.stdout
    assert "has no bf16 units" in done.stdout


def test_unknown_architecture_says_what_to_type(rehearse: Rehearse) -> None:
    done = rehearse("quickstart", "model.model_name_or_path=someone/some-model")
    assert done.returncode == 1
    assert "FAILED at stage 'model'" in done.stdout
    assert "type:  model.model_name_or_path=FOLDER" in done.stdout


def test_folder_to_keep_must_be_empty(rehearse: Rehearse, tmp_path: Path) -> None:
    done = rehearse("quickstart", "--keep", str(tmp_path))
    assert done.returncode == 2
    assert "is not empty" in done.stderr


def test_stopped_rehearsal_leaves_nothing(tmp_path: Path, started_variables: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "launcher", "rehearse", "quickstart"],
        cwd=tmp_path,
        env=started_variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 600
        while not any("run.py" in words for words in marked(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(600) == 128 + signal.SIGTERM
    assert_nothing_left(tmp_path)

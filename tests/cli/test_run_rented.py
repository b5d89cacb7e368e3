"""`launcher run` and `prepare` on a simulated instance: where things go, and what follows a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import instance, tiny
from tests.instance import Instance
from tests.launching import ROOT

_GONE = ("HF_HOME", "HF_ENDPOINT", "HF_HUB_OFFLINE", "LAUNCHER_CACHE", "TMPDIR", "CI")


def launcher(rented: Instance, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in _GONE}
    environ = kept | rented.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)} | variables
    command = [sys.executable, "-m", "launcher", *words]
    return subprocess.run(
        command, cwd=rented.root, env=environ, capture_output=True, text=True, check=False, timeout=900
    )


@pytest.fixture
def rented(tmp_path: Path) -> Instance:
    return instance.make(tmp_path / "i")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A recipe of a tiny classifier, two steps."""
    folder = tiny.write_bert(tmp_path / "bert")
    tiny.write_csv(tmp_path / "train.csv", 40)
    file = tmp_path / "job.yaml"
    file.write_text(
        f"summary: s\ntask: classification\nmodel: {{model_name_or_path: {folder}}}\n"
        f"data: {{train_file: {tmp_path / 'train.csv'}, max_length: 40}}\n"
        "training: {max_steps: 2, global_batch_size: 4}\n"
    )
    return file


def test_a_dry_run_says_what_would_follow_and_does_nothing(rented: Instance, job: Path) -> None:
    before = sorted(path for path in rented.root.rglob("*"))
    words = [
        "--then",
        "shutdown",
        "--then_on",
        "always",
        "--copy_to",
        str(rented.root / "root/autodl-fs/models"),
    ]
    done = launcher(rented, "run", str(job), "--dry-run", *words, "--notify")
    assert done.returncode == 0, done.stderr
    assert "launcher/run.py" in done.stdout
    for said in ("models/job.tar", "export AUTODL_TOKEN=", "however it ends", "KEEP_ON", "hf-mirror.com"):
        assert said in done.stderr
    assert sorted(path for path in rented.root.rglob("*")) == before


def test_without_cards_run_is_refused_and_a_cpu_said_by_hand_is_not(tmp_path: Path, job: Path) -> None:
    rented = instance.make(tmp_path / "off", num_gpus=0)
    done = launcher(rented, "run", str(job), "--dry-run")
    assert done.returncode == 1
    assert "started without its cards" in done.stderr and "launcher prepare" in done.stderr
    assert launcher(rented, "run", str(job), "--dry-run", "hardware.device=cpu").returncode == 0


def test_a_bare_rank_is_refused_alike(tmp_path: Path, job: Path) -> None:
    rented = instance.make(tmp_path / "off", num_gpus=0)
    environ = os.environ | rented.environ
    command = [sys.executable, str(ROOT / "launcher/run.py"), "--recipe", str(job)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 1
    assert "started without its cards" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_b080_a_whole_run_lands_on_the_data_disk_is_copied_and_switches_off(
    rented: Instance, job: Path
) -> None:
    target = rented.root / "root/autodl-fs"
    words = ["--then", "shutdown", "--grace", "0", "--copy_to", str(target)]
    done = launcher(rented, "run", str(job), *words)
    assert done.returncode == 0, done.stderr
    run = rented.data_disk / "runs/job"
    assert (run / "summary.json").is_file()
    assert (rented.root / "root/tf-logs/job").readlink() == run
    assert any((rented.data_disk / "cache/finetune-launcher").iterdir())
    assert not (rented.root / "root/.cache").exists()
    assert [path.name for path in target.iterdir()] == ["job.tar"]
    assert rented.calls == ["called: "]
    order = [
        done.stderr.find(words)
        for words in ("trained 2 steps", "read back and the same", "usr/bin/shutdown\n")
    ]
    assert order == sorted(order) and -1 not in order


@pytest.mark.slow
@pytest.mark.parametrize(("then_on", "calls"), [("success", []), ("always", ["called: "])])
def test_b080_a_run_that_fails(rented: Instance, job: Path, then_on: str, calls: list[str]) -> None:
    words = ["--then", "shutdown", "--then_on", then_on, "--grace", "0"]
    done = launcher(rented, "run", str(job), *words, "data.text_column=nosuch")
    assert done.returncode not in (0, 130)
    assert rented.calls == calls, done.stderr

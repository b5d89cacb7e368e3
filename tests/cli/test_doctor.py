"""`launcher doctor`, from the command line, on this machine and on simulated instances."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import instance
from tests.doctor.test_driver import TWO_4090
from tests.instance import Instance
from tests.launching import ROOT

_GONE = ("HF_HOME", "HF_ENDPOINT", "HF_HUB_OFFLINE", "LAUNCHER_CACHE", "TMPDIR", "CUDA_VISIBLE_DEVICES")


def doctor(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key not in _GONE}
    command = [sys.executable, "-m", "launcher", "doctor", *words]
    return subprocess.run(
        command, cwd=ROOT, env=kept | environ, capture_output=True, text=True, check=False, timeout=900
    )


def found(done: subprocess.CompletedProcess[str]) -> dict[str, list[dict[str, Any]]]:
    """The findings of --json, by check."""
    read: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(done.stdout)["findings"]:
        read.setdefault(finding["check"], []).append(finding)
    return read


@pytest.fixture
def rented(tmp_path: Path) -> Instance:
    return instance.make(tmp_path / "i", num_gpus=2)


@pytest.mark.slow
def test_this_machine_is_examined_and_nothing_is_changed(tmp_path: Path) -> None:
    environ = {"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path), "LAUNCHER_ROOT": str(tmp_path / "nothing")}
    done = doctor(environ, "quickstart", "--json")
    by_check = found(done)
    assert done.returncode == (0 if json.loads(done.stdout)["ok"] else 1), done.stderr
    assert by_check["model"][0]["status"] == by_check["data"][0]["status"] == "good"
    assert any("float32" in finding["found"] for finding in by_check["torch build"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_instance_with_two_cards_beside_a_build_for_the_cpu(rented: Instance) -> None:
    instance.add_smi(rented, [("NVIDIA GeForce RTX 4090", 24564, "8.9")] * 2, topology=TWO_4090)
    done = doctor(rented.environ | {"HF_HUB_OFFLINE": "1"}, "quickstart", "--json", "--fix")
    by_check = found(done)
    assert done.returncode == 1, done.stderr
    assert "build without CUDA, beside 2 card(s)" in by_check["torch build"][0]["found"]
    assert "an image of AutoDL" in by_check["torch build"][0]["type"]
    assert "cards 0-1: SYS" in by_check["topo"][0]["found"]
    assert "90.0 GiB of memory (cgroup v2" in by_check["host memory"][0]["found"]
    assert "planned as rtx4090" in by_check["driver"][1]["found"]
    [fixed] = json.loads(done.stdout)["fixed"]
    script = rented.data_disk / "cache/env.sh"
    assert str(script) in fixed
    shell = ["bash", "-c", f"source {script} && printenv HF_HOME"]
    said = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(rented.data_disk / "cache/huggingface")


def test_a_mistyped_recipe_is_the_persons_mistake() -> None:
    done = doctor({}, "quickstrat")
    assert done.returncode == 2 and "quickstart" in done.stderr and "Traceback" not in done.stderr


def test_help_is_a_result() -> None:
    done = doctor({}, "--help")
    assert done.returncode == 0 and "usage: launcher doctor" in done.stdout


def test_torch_is_only_imported_by_the_probe() -> None:
    code = (
        "import sys, launcher.cli.doctor, launcher.doctor.examine as e\n"
        "e.checks()\n"
        "heavy = {'torch', 'transformers', 'accelerate', 'deepspeed', 'bitsandbytes'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"

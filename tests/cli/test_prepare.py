"""`launcher prepare`: model and tokens are in place before a GPU is rented, and a second call finds them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.backends.options import BACKENDS
from launcher.process.build_operators import build, wanted
from tests import tiny
from tests.launching import ROOT
from tests.models.hub_server import COMMIT, Hub, serving


def prepare(hub: Hub, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    gone = ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "TRANSFORMERS_OFFLINE")
    environ = {key: value for key, value in os.environ.items() if key not in gone}
    environ |= {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(home / "hf"),
        "LAUNCHER_CACHE": str(home / "tokens"),
    }
    command = [sys.executable, "-m", "launcher", "prepare", *words]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_everything_is_there_after_one_call_and_nothing_happens_in_the_second(tmp_path: Path) -> None:
    folder = tiny.write_bert(tmp_path / "bert")
    tiny.write_csv(tmp_path / "train.csv", 40)
    (tmp_path / "job.yaml").write_text(
        f"summary: s\ntask: classification\nmodel: {{model_name_or_path: toy/model}}\n"
        f"data: {{train_file: {tmp_path / 'train.csv'}, max_length: 40}}\noutput_dir: {tmp_path / 'runs'}\n"
    )
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with serving(Hub(files=files, large=("model.safetensors",), cuts=1)) as hub:
        first = prepare(hub, tmp_path, str(tmp_path / "job.yaml"))
        assert first.returncode == 0, first.stderr
        assert first.stdout.strip().endswith(f"launcher run {tmp_path / 'job.yaml'}")
        assert f"model.revision={COMMIT}" in first.stderr and "tokens made" in first.stderr
        hub.served.clear()
        second = prepare(hub, tmp_path, str(tmp_path / "job.yaml"))
    assert second.returncode == 0 and not hub.served, second.stderr
    assert "0 B to fetch" in second.stderr and "tokens made" not in second.stderr


def test_missing_data_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    with serving(Hub(files={"config.json": b"{}"})) as hub:
        done = prepare(hub, tmp_path, "lora_7b_3090")
    assert done.returncode != 0 and hub.served == []
    assert "there is no file" in done.stderr and "Traceback" not in done.stderr


def test_operators_are_those_of_the_backend() -> None:
    found = {
        name: wanted(BACKENDS.get(name)) for name in ("fsdp2_offload", "zero2", "zero2_offload", "zero3_nvme")
    }
    assert found == {
        "fsdp2_offload": [],
        "zero2": [],
        "zero2_offload": ["cpu_adam"],
        "zero3_nvme": ["async_io", "cpu_adam"],
    }
    assert build(BACKENDS.get("fsdp2"), os.environ) == 0

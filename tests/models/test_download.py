"""Models come whole into the hub's cache: over cut lines, with their hashes checked, once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.models.download import HubFile, needed_files
from tests.launching import ROOT
from tests.models.hub_server import COMMIT, Hub, serving

WEIGHTS = bytes(range(256)) * (24 * 2**12)  # 24 MiB: the client keeps parts of 10 MB
SCRIPT = """
import sys
from launcher.errors import LauncherError
from launcher.models.download import download
from launcher.models.options import ModelOptions
try:
    done = download(ModelOptions(model_name_or_path="toy/model"), say=print)
except LauncherError as error:
    print(error)
    sys.exit(7)
print(done.folder, done.revision, done.num_new_bytes)
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    files = {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}", "model.safetensors": WEIGHTS}
    files |= {"pytorch_model.bin": b"not needed", "README.md": b"not needed either"}
    with serving(Hub(files=files, large=("model.safetensors",))) as served:
        yield served


def fetch(hub: Hub, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the hub's client reads its environment when it is imported."""
    gone = ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "TRANSFORMERS_OFFLINE")
    environ = {key: value for key, value in os.environ.items() if key not in gone}
    environ |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(
        command, cwd=ROOT, env=environ | more, capture_output=True, text=True, check=False, timeout=900
    )


def test_a_model_comes_whole_and_only_what_training_reads(hub: Hub, tmp_path: Path) -> None:
    done = fetch(hub, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = Path(done.stdout.split()[-3])
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS and COMMIT in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_a_second_call_fetches_nothing(hub: Hub, tmp_path: Path) -> None:
    fetch(hub, tmp_path)
    hub.served.clear()
    done = fetch(hub, tmp_path)
    assert done.returncode == 0 and hub.served == [] and done.stdout.split()[-1] == "0"


def test_b077_cut_lines_are_taken_up_where_they_broke(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = 3
    done = fetch(hub, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(done.stdout.split()[-3], "model.safetensors").read_bytes() == WEIGHTS
    starts = [start for name, start in hub.served if name == "model.safetensors"]
    assert len(starts) >= 2 and starts[-1] > 0, "the last part alone was fetched"


def test_wrong_bytes_are_found_by_their_hash_and_fetched_again(hub: Hub, tmp_path: Path) -> None:
    hub.wrong = {"model.safetensors"}
    done = fetch(hub, tmp_path)
    assert done.returncode == 0 and "not what the hub says" in done.stdout
    assert Path(done.stdout.split()[-3], "model.safetensors").read_bytes() == WEIGHTS


def test_b077_offline_never_asks(hub: Hub, tmp_path: Path) -> None:
    done = fetch(hub, tmp_path, HF_HUB_OFFLINE="1")
    assert done.returncode == 7 and hub.served == [] and "HF_HUB_OFFLINE" in done.stdout


def test_one_form_of_the_weights_is_enough() -> None:
    def named(*names: str) -> list[HubFile]:
        return [HubFile(name=name, num_bytes=1, sha256=None, git_sha1=None) for name in names]

    both = named("config.json", "model.safetensors", "pytorch_model.bin", "onnx/model.onnx", "tf_model.h5")
    assert [each.name for each in needed_files(both)] == ["config.json", "model.safetensors"]
    old = named("config.json", "pytorch_model.bin", "vocab.txt", "flax_model.msgpack")
    assert [each.name for each in needed_files(old)] == ["config.json", "pytorch_model.bin", "vocab.txt"]

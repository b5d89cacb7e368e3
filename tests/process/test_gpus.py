"""Which cards may be used: the environment first, then the driver's device files."""

from pathlib import Path

import pytest

from launcher.process.gpus import visible_gpus


def devices(tmp_path: Path, count: int) -> Path:
    """A /dev with so many cards, and the driver's other files."""
    for name in [*(f"nvidia{index}" for index in range(count)), "nvidiactl", "nvidia-uvm"]:
        (tmp_path / name).touch()
    return tmp_path


def test_device_files_are_counted(tmp_path: Path) -> None:
    assert visible_gpus({}, devices(tmp_path, 3)) == ("0", "1", "2")


def test_no_driver_is_no_card(tmp_path: Path) -> None:
    assert visible_gpus({}, tmp_path) == ()


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("", ()),
        ("-1", ()),
        ("1", ("1",)),
        ("2,0", ("2", "0")),
        ("0,-1,1", ("0",)),
        ("GPU-ab, GPU-cd", ("GPU-ab", "GPU-cd")),
    ],
)
def test_the_environment_has_the_last_word(tmp_path: Path, asked: str, seen: tuple[str, ...]) -> None:
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": asked}, devices(tmp_path, 8)) == seen


def test_wsl_asks_the_driver(tmp_path: Path) -> None:
    (tmp_path / "dxg").touch()
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-1)'\n")
    tool.chmod(0o755)
    assert visible_gpus({"PATH": str(tmp_path)}, tmp_path) == ("0",)

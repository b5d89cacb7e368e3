"""Which cards may be used: the environment first, then the driver's device files."""

from pathlib import Path

import pytest

from launcher.process.gpus import peer_environment, visible_gpus

BOTH = {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}


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


def smi(folder: Path, *cards: tuple[str, int]) -> dict[str, str]:
    """An environment whose nvidia-smi lists these names with so many MiB."""
    lines = [f"{index}, GPU-{index}ab, {memory}, {name}" for index, (name, memory) in enumerate(cards)]
    tool = folder / "nvidia-smi"
    tool.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    tool.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("name", "memory", "variables"),
    [
        ("NVIDIA GeForce RTX 4090", 24564, BOTH),
        ("NVIDIA GeForce RTX 4090 D", 24564, BOTH),
        ("NVIDIA GeForce RTX 4090", 49140, BOTH),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, BOTH),
        ("NVIDIA GeForce RTX 5090", 32607, BOTH),
        ("NVIDIA vGPU-32GB", 32760, BOTH),
        ("NVIDIA GeForce RTX 3090", 49152, BOTH),
        ("NVIDIA GeForce RTX 3090", 24576, {}),
        ("NVIDIA A100-SXM4-80GB", 81920, {}),
        ("NVIDIA RTX 4000 Ada Generation", 20475, {}),
        ("Tesla V100-SXM2-32GB", 32768, {}),
    ],
)
def test_b059_cards_without_peers_by_the_drivers_name_and_memory(
    tmp_path: Path, name: str, memory: int, variables: dict[str, str]
) -> None:
    environ = smi(tmp_path, (name, memory), (name, memory))
    assert peer_environment(environ, ("0", "1"), tmp_path) == variables
    assert peer_environment(environ, ("0",), tmp_path) == {}


def test_b059_only_the_cards_in_use_count(tmp_path: Path) -> None:
    small, large = ("NVIDIA GeForce RTX 3090", 24576), ("NVIDIA GeForce RTX 4090", 24564)
    environ = smi(tmp_path, small, small, large, large)
    assert peer_environment(environ, ("0", "1"), tmp_path) == {}
    assert peer_environment(environ, ("GPU-2ab", "GPU-3ab"), tmp_path) == BOTH


def test_b059_a_persons_own_word_stays(tmp_path: Path) -> None:
    environ = smi(tmp_path, *[("NVIDIA GeForce RTX 4090", 24564)] * 2) | {"NCCL_P2P_DISABLE": "0"}
    assert peer_environment(environ, ("0", "1"), tmp_path) == {"NCCL_IB_DISABLE": "1"}


@pytest.mark.parametrize(
    ("name", "variables"), [("NVIDIA GeForce RTX 4090", BOTH), ("NVIDIA GeForce RTX 3090", {})]
)
def test_b059_without_nvidia_smi_the_drivers_files_give_the_name(
    tmp_path: Path, name: str, variables: dict[str, str]
) -> None:
    for card in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / "gpus" / card).mkdir(parents=True)
        (tmp_path / "gpus" / card / "information").write_text(f"Model: \t\t {name}\nIRQ: 1\n")
    assert peer_environment({"PATH": "/nowhere"}, ("0", "1"), tmp_path) == variables
    assert peer_environment({"PATH": "/nowhere"}, ("0", "1"), tmp_path / "none") == {}

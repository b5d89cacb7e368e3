"""nvidia-smi's own formats: cards, driver, and how cards are wired."""

from pathlib import Path

import pytest

from launcher.doctor.driver import Card, read_cards, read_cuda, read_driver, read_topology
from tests import instance

TWO_4090 = (
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tSYS\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tSYS\t X \t32-63,96-127\t1\t\tN/A\n\nLegend:\n\n  X    = Self\n"
)
FOUR_WITH_ADAPTERS = (
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\t0-63\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tNV12\tNV12\tPXB\tSYS\t0-63\t0\t\tN/A\n"
    "GPU2\tNV12\tNV12\t X \tNV12\tSYS\tPXB\t64-127\t1\t\tN/A\n"
    "GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPXB\t64-127\t1\t\tN/A\n"
    "NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tPXB\tPXB\tSYS\t X \t\t\t\t\n"
)
BRIDGED_3090 = (
    "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV4\tPHB\t0-15\tN/A\nGPU1\tNV4\t X \tPHB\t0-15\tN/A\nGPU2\tPHB\tPHB\t X \t0-15\tN/A\n"
)


@pytest.mark.parametrize(
    ("text", "links"),
    [
        (TWO_4090, {(0, 1): "SYS"}),
        (
            FOUR_WITH_ADAPTERS,
            dict.fromkeys([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], "NV12"),
        ),
        (BRIDGED_3090, {(0, 1): "NV4", (0, 2): "PHB", (1, 2): "PHB"}),
        ("", {}),
        ("Failed to initialize NVML: Driver/library version mismatch\n", {}),
    ],
)
def test_topology_is_read_pair_by_pair(text: str, links: dict[tuple[int, int], str]) -> None:
    assert read_topology(text) == links


def test_cards_are_read_with_names_that_hold_commas() -> None:
    text = (
        "0, 24564, 8.9, 550.54.15, NVIDIA GeForce RTX 4090\n1, 81559, [N/A], 550.54.15, NVIDIA H100, 80GB\n"
    )
    first, second = read_cards(text)
    assert (first.sm, first.memory_bytes) == ("sm_89", 24564 * 2**20)
    assert (second.name, second.capability) == ("NVIDIA H100, 80GB", (0, 0))


def test_a_doubled_card_is_told_from_the_plain_one_by_memory() -> None:
    plain = Card(index="0", name="NVIDIA GeForce RTX 3090", memory_bytes=24576 * 2**20)
    doubled = Card(index="0", name="NVIDIA GeForce RTX 3090", memory_bytes=49152 * 2**20)
    assert plain.known is not None and doubled.known is not None
    assert (plain.known.name, doubled.known.name) == ("rtx3090", "vgpu48_350w")


def test_the_newest_cuda_of_a_driver_stands_in_the_head() -> None:
    assert read_cuda("| NVIDIA-SMI 580.65.06    Driver Version: 580.65.06   CUDA Version: 13.0  |") == "13.0"
    assert read_cuda("") == ""


def test_a_whole_machine_is_read_from_the_tool_on_path(tmp_path: Path) -> None:
    rented = instance.make(tmp_path / "i", num_gpus=2)
    instance.add_smi(rented, [("NVIDIA GeForce RTX 4090", 24564, "8.9")] * 2, topology=TWO_4090)
    found = read_driver(rented.environ)
    assert (found.version, found.cuda, len(found.cards)) == ("580.65.06", "13.0", 2)
    assert read_topology(found.topology) == {(0, 1): "SYS"}


@pytest.mark.parametrize(
    ("text", "code", "fault"),
    [
        ("No devices were found", 6, ""),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "Driver/library version mismatch"),
    ],
)
def test_a_tool_that_fails_is_quoted(tmp_path: Path, text: str, code: int, fault: str) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{text}'\nexit {code}\n")
    tool.chmod(0o755)
    found = read_driver({"PATH": str(tmp_path)})
    assert found.cards == ()
    assert fault in found.fault and bool(found.fault) == bool(fault)


def test_no_tool_is_no_fault(tmp_path: Path) -> None:
    assert read_driver({"PATH": str(tmp_path)}).fault == ""

"""ZeRO-Infinity gives the numbers of one process, with weights, moments and gradients really in files.

Its models are wider than the others': DeepSpeed keeps below 1 MiB a tensor in RAM.
"""

import re
from pathlib import Path

import pytest

from launcher.hardware.ports import free_port
from tests.equivalence.cells import WIDE
from tests.equivalence.conftest import Cells
from tests.equivalence.measures import moved, norms
from tests.launching import BIN, RUN, distance, losses, trained, weights

ON_DISK = re.compile(r"^on disk: (\d+) of (\d+) optimizer groups, (\d+) files", re.MULTILINE)


@pytest.mark.parametrize("cell", WIDE)
def test_exact_from_disk(cell: str, cells: Cells) -> None:
    runs, said = cells("zero3_nvme")
    base, _ = cells("single_gpu")
    assert "zero3_nvme: DeepSpeedEngine over 2 ranks" in said
    ours, alone = runs / f"zero3_nvme-{cell}", base / f"single_gpu-{cell}"
    assert losses(ours) == pytest.approx(losses(alone), abs=1e-5)
    assert norms(ours) == pytest.approx(norms(alone), abs=1e-4)
    way, length = moved(alone)
    assert way >= 0.01 * length
    assert distance(weights(ours / "final"), weights(alone / "final")) <= 1e-3 * way


def test_weights_lie_in_files_and_moments_too_where_the_model_is_trained(cells: Cells) -> None:
    _, said = cells("zero3_nvme")
    found = [tuple(map(int, match)) for match in ON_DISK.findall(said)]
    assert len(found) == len(WIDE)
    assert all(num_files > 0 for _, _, num_files in found)
    groups = dict(zip(WIDE, (num_groups for num_groups, _, _ in found), strict=True))
    assert {cell: number > 0 for cell, number in groups.items()} == {cell: "full" in cell for cell in WIDE}


def test_nothing_stays_on_the_disk(cells: Cells, material: Path) -> None:
    cells("zero3_nvme")
    assert [*(material / "disk").iterdir()] == []


def test_a_run_on_disk_goes_on_from_its_checkpoint(cells: Cells, material: Path) -> None:
    """Weights and moments are written back into the files they are paged from."""
    runs, _ = cells("zero3_nvme")
    recipe = ["--recipe", str(material / "classifier.yaml"), f"backend.nvme_path={material / 'disk'}"]
    common = [*recipe, f"model_name_or_path={material / 'classifier-wide'}", "max_steps=6", "save_steps=3"]
    common += ["--backend", "zero3_nvme"]
    head = [str(BIN / "accelerate"), "launch", "--config_file", "accelerate_configs/zero3_nvme.yaml"]
    run = [*head, "--main_process_port", str(free_port()), RUN]
    trained([*run, *common, "--name", "whole"], timeout_s=600)
    trained(
        [*run, *common, "--name", "again", "--resume", str(runs / "whole" / "checkpoint-3")], timeout_s=600
    )
    assert losses(runs / "again") == pytest.approx(losses(runs / "whole")[3:], abs=1e-6)
    assert distance(weights(runs / "again" / "final"), weights(runs / "whole" / "final")) <= 1e-5

"""What is settled before the first step."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.errors import DoesNotFit
from launcher.recipe.training import TrainingOptions
from launcher.train.setup import require_room, total_steps

MIB = 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 20 MiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.decode().strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_too_little_disk_is_refused_before_the_first_step(small_disk: Path) -> None:
    require_room(small_disk, kept=3, checkpoint_bytes=5 * MIB, final_bytes=4 * MIB)
    with pytest.raises(DoesNotFit) as caught:
        require_room(small_disk, kept=3, checkpoint_bytes=6 * MIB, final_bytes=4 * MIB)
    assert "22.0 MiB" in str(caught.value) and "--output_dir" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"num_train_epochs": 3}, 36),
        ({"num_train_epochs": 0.5}, 6),
        ({"num_train_epochs": 0.01}, 1),
        ({"num_train_epochs": 1.01}, 13),
        ({"num_train_epochs": 3, "max_steps": 5}, 5),
    ],
)
def test_steps_of_a_run(options: dict[str, float], steps: int) -> None:
    assert total_steps(TrainingOptions.model_validate(options), steps_per_epoch=12) == steps

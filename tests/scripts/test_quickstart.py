"""The quickstart's last words: where the model is, on any machine. Set-up and training are pretended."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import instance


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path, root: Path) -> Path:
    """The script beside a set-up that only names an environment, whose `launcher` trains nothing."""
    folder = tmp_path / "clone"
    program(folder / "scripts/setup.sh", "echo environment\n")
    shutil.copy(root / "scripts/quickstart.sh", folder / "scripts")
    program(folder / "environment/bin/launcher", "#!/bin/sh\n")
    program(folder / "environment/bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    return folder


def said(clone: Path, root: Path, **variables: str) -> str:
    done = subprocess.run(
        ["bash", str(clone / "scripts/quickstart.sh"), "quickstart"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root), "LAUNCHER_ROOT": str(clone), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_model_is_below_the_clone_here(clone: Path, root: Path) -> None:
    text = said(clone, root)
    assert "The trained model is runs/quickstart/final." in text
    assert 'environment/bin/launcher predict runs/quickstart "a warm' in text


def test_the_model_is_on_the_data_disk_of_a_rented_machine(clone: Path, root: Path, tmp_path: Path) -> None:
    rented = instance.make(tmp_path / "instance")
    text = said(clone, root, LAUNCHER_ROOT=str(rented.root))
    assert f"The trained model is {rented.data_disk}/runs/quickstart/final." in text
    assert f"predict {rented.data_disk}/runs/quickstart" in text

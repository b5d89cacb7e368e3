"""The checks of `make lint`, so that one command finds everything."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "command",
    ["ruff check .", "ruff format --check .", "mypy"],
)
def test_the_source_is_clean(command: str, root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

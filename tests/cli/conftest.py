"""What the command-line tests share: a verb run in this process, or in one of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_verb(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `launcher ...` in an empty working directory; gives exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run Python in a process of its own, in an empty working directory, the package on its path."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(root)}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    return run

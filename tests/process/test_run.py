"""launcher/run.py as starters start it: its imports, one message on one rank, its exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.hardware.ports import free_port
from tests.process.families import BIN, STARTERS

MISTAKE = ["--recipe", "nosuch"]
SAID = "there is no recipe 'nosuch'"


def start(command: list[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run to the end, without a GPU."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu"} | variables
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [[], ["-P"]])
def test_a_mistake_is_one_message_and_exit_code_2_from_any_directory(
    tmp_path: Path, root: Path, options: list[str]
) -> None:
    """With -P Python puts no script folder on the path; replacing entry 0 blindly would lose the library."""
    done = start([sys.executable, *options, str(root / "launcher/run.py"), *MISTAKE], tmp_path)
    assert done.returncode == 2
    assert done.stderr.count(SAID) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_started_as_a_module_it_is_the_same(root: Path) -> None:
    done = start([sys.executable, "-m", "launcher.run", *MISTAKE], root)
    assert (done.returncode, done.stderr.count(SAID)) == (2, 1)


def test_the_packages_folder_does_not_shadow_what_it_imports(root: Path, tmp_path: Path) -> None:
    """launcher/ holds data, models, metrics ...: none may be importable at top level."""
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['run.py', '--help']; sys.path.insert(0, {str(root / 'launcher')!r})\n"
        "try: runpy.run_path(sys.path[0] + '/run.py', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "import importlib.util; print(importlib.util.find_spec('backends'), sys.path[0])"
    )
    done = start([sys.executable, "-P", "-c", code], tmp_path)
    assert done.stdout == f"None {root}\n"


def test_ranks_but_the_first_are_silent_and_leave_with_the_same_code(root: Path) -> None:
    variables = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    done = start([sys.executable, "launcher/run.py", *MISTAKE], root, **variables)
    assert (done.returncode, done.stderr) == (2, "")


@pytest.mark.parametrize("name", ["torchrun x2", pytest.param("accelerate x2", marks=pytest.mark.slow)])
def test_several_ranks_tell_a_mistake_once(root: Path, name: str) -> None:
    command, _ = STARTERS[name]
    done = start([*command, "launcher/run.py", *MISTAKE], root)
    assert done.returncode != 0
    assert done.stderr.count(SAID) == 1


def test_b058_deepspeeds_own_rank_argument_is_accepted(root: Path) -> None:
    """deepspeed puts --local_rank=N first behind the script."""
    command = [str(BIN / "deepspeed"), "--num_gpus", "1", "--master_port", str(free_port())]
    done = start([*command, "launcher/run.py", *MISTAKE], root)
    assert done.returncode == 2
    assert done.stderr.count(SAID) == 1
    assert "--local_rank=0" in done.stdout  # it was really passed


def test_run_py_stays_a_start_and_nothing_else(root: Path) -> None:
    lines = (root / "launcher/run.py").read_text().splitlines()
    assert len(lines) <= 60

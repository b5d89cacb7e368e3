"""How a rank's end is told: once, in words, with its code where the supervisor looks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.process.exit_codes import read_exit_code

END = """
import sys
from launcher.errors import DoesNotFit, Problem
from launcher.process import rank_process
def work(argv):
    raise {raised}
rank_process._work = work
sys.exit(rank_process.run_as_rank([]))
"""
PROBLEM = "DoesNotFit(Problem(where='plan', what='too big', right='smaller', type='lora'))"


def end(raised: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A rank whose work ends so."""
    environment = os.environ | {"LAUNCHER_EXIT_FILE": str(tmp_path / "exit.json")} | variables
    code = END.format(raised=raised)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("raised", "code", "said"), [(PROBLEM, 1, "too big"), ("KeyboardInterrupt", 75, "--resume")]
)
def test_an_end_is_said_framed_or_in_a_line_and_its_code_left_for_the_supervisor(
    tmp_path: Path, raised: str, code: int, said: str
) -> None:
    done = end(raised, tmp_path)
    assert done.returncode == code
    assert done.stderr.count(said) == 1
    assert "Traceback" not in done.stderr
    assert (tmp_path / "exit.json").read_text() == f'{{"exit_code": {code}}}'


def test_a_message_stands_between_two_rules(tmp_path: Path) -> None:
    lines = end(PROBLEM, tmp_path).stderr.splitlines()
    assert lines[0] == lines[-1] == "=" * 78


def test_a_programmers_mistake_keeps_its_traceback(tmp_path: Path) -> None:
    done = end("AssertionError('ours')", tmp_path)
    assert done.returncode == 1
    assert "AssertionError: ours" in done.stderr
    assert read_exit_code(tmp_path / "exit.json") == 1


def test_other_ranks_say_nothing(tmp_path: Path) -> None:
    done = end(PROBLEM, tmp_path, RANK="1")
    assert (done.returncode, done.stderr) == (1, "")


def test_help_is_no_failure(tmp_path: Path) -> None:
    done = end("rank_process.HelpWanted('usage')", tmp_path)
    assert (done.returncode, done.stderr) == (0, "usage\n")

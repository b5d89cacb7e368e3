"""Two processes and one run folder: the second is refused while the first lives, and only then."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.errors import Conflict, HardwareError
from launcher.train.owner import FILE, give_up, own
from tests.launching import ROOT

HOLD = """
import sys, os
from pathlib import Path
from launcher.train.owner import own
own(Path(sys.argv[1]))
if sys.argv[2] == "with a worker" and not os.fork():
    sys.stdin.read()
    os._exit(0)
print("taken", flush=True)
sys.stdin.read()
"""


def holder(folder: Path, manner: str = "alone") -> "subprocess.Popen[str]":
    """A process that has taken the folder."""
    command = [sys.executable, "-c", HOLD, str(folder), manner]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    assert child.stdout and child.stdout.readline() == "taken\n"
    return child


def test_a_second_process_is_refused_and_told_who_has_the_folder(tmp_path: Path) -> None:
    first = holder(tmp_path)
    with pytest.raises(Conflict) as refused:
        own(tmp_path)
    assert f"process {first.pid} on " in str(refused.value) and "--name OTHER" in str(refused.value)
    first.communicate()
    assert own(tmp_path) == []
    give_up(tmp_path)


@pytest.mark.parametrize("manner", ["alone", "with a worker"])
def test_a_killed_owner_leaves_no_lock_even_where_its_workers_live_on(tmp_path: Path, manner: str) -> None:
    first = holder(tmp_path, manner)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert own(tmp_path) == []
    give_up(tmp_path)
    first.communicate()


def test_a_folder_that_is_owned_already_may_be_taken_again_by_its_owner(tmp_path: Path) -> None:
    assert own(tmp_path) == [] and own(tmp_path) == []
    give_up(tmp_path)


@pytest.mark.parametrize("content", ["", "nonsense", "{}"])
def test_a_record_that_cannot_be_read_still_refuses(tmp_path: Path, content: str) -> None:
    first = holder(tmp_path)
    (tmp_path / FILE).write_text(content)
    with pytest.raises(Conflict, match="another process"):
        own(tmp_path)
    first.communicate()


def test_a_folder_that_cannot_be_written_in_is_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        (tmp_path / FILE).mkdir()  # root may write anywhere, but not into a folder as if it were a file
    else:
        tmp_path.chmod(0o500)
    with pytest.raises(HardwareError, match="nothing can be written here"):
        own(tmp_path)
    tmp_path.chmod(0o700)

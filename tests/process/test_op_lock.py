"""A lock left by a killed compilation is removed; one whose compiler lives is kept."""

import subprocess
import sys
from pathlib import Path

import pytest

from launcher.process.op_lock import clear_stale_locks, has_owner

HOLD = """
import sys
from torch.utils.file_baton import FileBaton
FileBaton(sys.argv[1]).try_acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Where DeepSpeed's first compilation on this Python would lock."""
    path = tmp_path / "py311_cpu" / "deepspeed_shm_comm" / "lock"
    path.parent.mkdir(parents=True)
    return path


def environ(lock: Path) -> dict[str, str]:
    """The variable that moves torch's extension folder."""
    return {"TORCH_EXTENSIONS_DIR": str(lock.parents[2])}


def test_a_lock_without_owner_is_removed_and_named(lock: Path) -> None:
    lock.touch()
    (line,) = clear_stale_locks(environ(lock))
    assert line.startswith(f"removed {lock}")
    assert not lock.exists()


def test_torchs_own_lock_is_kept_while_its_process_lives_and_removed_after_its_death(lock: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as compiler:
        assert compiler.stdout is not None
        assert compiler.stdout.readline() == "held\n"
        assert has_owner(lock)
        assert clear_stale_locks(environ(lock)) == ()
        assert lock.exists()
        compiler.kill()
    assert len(clear_stale_locks(environ(lock))) == 1
    assert not lock.exists()


def test_no_extension_folder_is_nothing_to_do(tmp_path: Path) -> None:
    assert clear_stale_locks({"TORCH_EXTENSIONS_DIR": str(tmp_path / "none")}) == ()


def test_a_lock_below_one_folder_is_found_too(tmp_path: Path) -> None:
    lock = tmp_path / "deepspeed_shm_comm" / "lock"
    lock.parent.mkdir()
    lock.touch()
    assert len(clear_stale_locks({"TORCH_EXTENSIONS_DIR": str(tmp_path)})) == 1

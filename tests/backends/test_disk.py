"""ZeRO-Infinity's folder: what cannot work is told before anything starts, and nothing stays behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.backends import disk
from launcher.backends.operators import ASYNC_IO, is_compiled
from launcher.backends.options import BACKENDS
from launcher.errors import BadValue, DoesNotFit, HardwareError
from tests.launching import ROOT


def config(path: Path | str | None) -> dict[str, Any]:
    """The backend's JSON with that folder."""
    backend = BACKENDS.get("zero3_nvme")
    assert backend.ds_config is not None
    made = backend.ds_config(backend.options(name="zero3_nvme"))
    for block in disk.BLOCKS:
        made["zero_optimization"][block]["nvme_path"] = path and str(path)
    return made


def refusal(path: Path) -> str:
    with pytest.raises(HardwareError) as caught:
        disk.require_usable(config(path), os.environ)
    return str(caught.value)


def test_a_json_without_a_disk_is_silent() -> None:
    backend = BACKENDS.get("zero3_offload")
    assert backend.ds_config is not None
    assert disk.require_usable(backend.ds_config(backend.options(name="zero3_offload")), os.environ) == []


def test_a_usable_folder_is_told_with_its_free_space(tmp_path: Path) -> None:
    if not is_compiled(ASYNC_IO, os.environ):
        pytest.skip("async_io is not compiled; type: python -m launcher.backends.build_torch async_io")
    (line,) = disk.require_usable(config(tmp_path / "new"), os.environ)
    assert str(tmp_path / "new") in line and "free" in line
    assert not (tmp_path / "new").exists()


def test_a_missing_folder_above_is_named_with_what_to_type(tmp_path: Path) -> None:
    said = refusal(tmp_path / "no" / "disk")
    assert f"{tmp_path / 'no'} is not there" in said
    assert f"mkdir -p {tmp_path / 'no' / 'disk'}" in said


def test_a_file_in_its_place_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is no folder" in refusal(tmp_path / "file")


def test_a_device_without_a_path_is_refused() -> None:
    with pytest.raises(BadValue, match='"nvme_path": "/mnt'):
        disk.require_usable(config(None), os.environ)


def test_too_little_space_names_both_figures(tmp_path: Path) -> None:
    disk.require_space(tmp_path / "not yet", 1)
    with pytest.raises(DoesNotFit) as caught:
        disk.require_space(tmp_path, 2**60)
    said = str(caught.value)
    assert "1073741824.0 GiB" in said and "are free" in said and "backend.nvme_path=" in said


def test_buffers_that_may_not_be_locked_are_refused_early() -> None:
    """In a process of its own, whose limit is lowered and whose privilege to pass it is dropped."""
    code = (
        "import ctypes, os, resource\n"
        "from launcher.backends.disk import require_lockable\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))\n"
        "ctypes.CDLL(None).prctl(24, 14, 0, 0, 0)\n"  # PR_CAPBSET_DROP CAP_IPC_LOCK
        "os.geteuid() or os.setuid(65534)\n"
        "require_lockable(1000); require_lockable(2**20)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "1.0 MiB of buffers must be locked in memory, 64.0 KiB are allowed" in done.stderr
    assert "ulimit -l unlimited" in done.stderr


def test_each_rank_has_its_own_folder_and_removes_it(tmp_path: Path) -> None:
    first, second = (disk.take_folder(tmp_path, rank) for rank in (0, 1))
    (first.path / "some.swp").write_bytes(b"1")
    assert first.path != second.path and second.path.exists()
    for each in (first, second):
        each.remove()
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def killed(tmp_path: Path, root: Path) -> Iterator[Path]:
    """The folder that a process left which was killed."""
    code = (
        "import sys, time; from pathlib import Path; from launcher.backends.disk import take_folder\n"
        "taken = take_folder(Path(sys.argv[1]), 0); print(taken.path, flush=True); time.sleep(1800)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    path = Path(process.stdout.readline().strip())
    assert not disk._is_in_use(path.parent / "other")
    assert disk._is_in_use(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    yield path


def test_what_a_killed_run_left_is_removed_by_the_next_start(killed: Path) -> None:
    assert killed.exists()
    deadline = time.monotonic() + 60
    while disk._is_in_use(killed) and time.monotonic() < deadline:
        time.sleep(0.01)
    taken = disk.take_folder(killed.parent, 0)
    assert [*killed.parent.iterdir()] == [taken.path]
    taken.remove()

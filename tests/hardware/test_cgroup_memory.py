"""What control groups say of memory used and of kills, in simulated trees of version 1 and 2."""

from pathlib import Path

import pytest

from launcher.hardware.cgroup import memory_use
from launcher.process.exit_codes import in_words
from launcher.process.host_words import before

GIB = 2**30


def _tree(root: Path, version: int, *, kills: int, peak: int, limit: str) -> Path:
    """A container whose group is the mount point, as Docker mounts it."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/meminfo").write_text(f"MemTotal: {900 * GIB // 1024} kB\n")
    mount = root / ("sys/fs/cgroup" if version == 2 else "sys/fs/cgroup/memory")
    mount.mkdir(parents=True, exist_ok=True)
    if version == 2:
        (root / "proc/self/cgroup").write_text("0::/\n")
        line = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
        files = {
            "memory.peak": f"{peak}",
            "memory.max": limit,
            "memory.events": f"low 0\noom 3\noom_kill {kills}\n",
        }
    else:
        (root / "proc/self/cgroup").write_text("4:memory:/docker/abc\n")
        line = "30 23 0:26 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        control = f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"
        names = ("memory.max_usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control")
        files = dict(zip(names, (f"{peak}", limit, control), strict=True))
    (root / "proc/self/mountinfo").write_text(line)
    for name, text in files.items():
        (mount / name).write_text(f"{text}\n")
    return root


@pytest.mark.parametrize("version", [1, 2])
def test_use_limit_and_kills_are_read(tmp_path: Path, version: int) -> None:
    (use,) = memory_use(_tree(tmp_path, version, kills=2, peak=89 * GIB, limit=str(90 * GIB)))
    assert (use.peak_bytes, use.limit_bytes, use.oom_kills) == (89 * GIB, 90 * GIB, 2)
    assert f"cgroup v{version}" in use.source


@pytest.mark.parametrize(("version", "limit"), [(1, str(2**63 - 4096)), (2, "max")])
def test_no_limit_is_none(tmp_path: Path, version: int, limit: str) -> None:
    (use,) = memory_use(_tree(tmp_path, version, kills=0, peak=GIB, limit=limit))
    assert use.limit_bytes is None


def test_a_machine_without_groups_says_nothing(tmp_path: Path) -> None:
    assert memory_use(tmp_path) == []
    assert before(tmp_path).killed_words() == ""
    assert "most often by the kernel" in in_words(-9, before(tmp_path))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("code", [-9, 137])
def test_a_kill_by_the_memory_limit_is_told_with_figures(tmp_path: Path, version: int, code: int) -> None:
    host = before(_tree(tmp_path, version, kills=1, peak=GIB, limit=str(90 * GIB)))
    _tree(tmp_path, version, kills=2, peak=int(89.7 * GIB), limit=str(90 * GIB))
    words = in_words(code, host)
    assert "SIGKILL: killed by the kernel for want of host memory: peak 89.7 GiB of 90" in words
    assert f"cgroup v{version}" in words
    assert "dataloader_num_workers" in words


@pytest.mark.parametrize("version", [1, 2])
def test_a_kill_that_no_limit_counted_came_from_elsewhere(tmp_path: Path, version: int) -> None:
    """Kills of earlier runs do not count."""
    host = before(_tree(tmp_path, version, kills=5, peak=12 * GIB, limit=str(90 * GIB)))
    words = in_words(-9, host)
    assert "killed from outside, not by this container's memory limit" in words
    assert "peak 12" in words


def test_a_kill_for_want_of_memory_without_a_limit_names_the_hosts(tmp_path: Path) -> None:
    host = before(_tree(tmp_path, 2, kills=0, peak=GIB, limit="max"))
    _tree(tmp_path, 2, kills=1, peak=800 * GIB, limit="max")
    assert "peak 800.0 GiB of 900.0 GiB of the host" in in_words(-9, host)


def test_a_bus_error_tells_the_size_of_shared_memory(tmp_path: Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    words = in_words(-7, before(tmp_path))
    assert "SIGBUS: bus error" in words
    assert "/dev/shm" in words
    assert "GiB" in words or "MiB" in words


def test_other_signals_keep_their_words(tmp_path: Path) -> None:
    assert "SIGSEGV: crashed inside native code" in in_words(-11, before(tmp_path))

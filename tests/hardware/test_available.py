"""Free host memory: the least of the kernel's word and what every control group has left."""

from pathlib import Path

from launcher.hardware.available import available_bytes

GIB = 2**30


def write(root: Path, files: dict[str, str]) -> Path:
    common = {
        "proc/meminfo": f"MemTotal: {64 * 2**20} kB\nMemAvailable: {40 * 2**20} kB\n",
        "proc/self/cgroup": "0::/job\n",
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/job/cgroup.procs": "",
    }
    for name, text in (common | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_without_limits_the_kernels_word_counts(tmp_path: Path) -> None:
    assert available_bytes(write(tmp_path, {})) == 40 * GIB


def test_a_group_has_its_limit_less_what_it_holds_but_idle_cache_is_free(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/job"
    files = {
        f"{group}/memory.max": str(16 * GIB),
        f"{group}/memory.current": str(12 * GIB),
        f"{group}/memory.stat": f"anon {5 * GIB}\ninactive_file {3 * GIB}\n",
    }
    assert available_bytes(write(tmp_path, files)) == 7 * GIB


def test_a_group_that_is_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/job"
    files = {f"{group}/memory.max": str(GIB), f"{group}/memory.current": str(2 * GIB)}
    assert available_bytes(write(tmp_path, files)) == 0


def test_this_machine_has_some_left() -> None:
    assert available_bytes() > 2**20

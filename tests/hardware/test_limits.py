"""B078: what a container grants counts, not what the host has."""

import os
from pathlib import Path

import pytest

from launcher.hardware import cgroup, limits
from launcher.units import GIB
from tests.hardware.conftest import Tree

V2_MOUNT = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
V1_MOUNTS = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs  rw,mode=755\n"
    "32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw master:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "36 31 0:33 {top} /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
)
UNLIMITED_V1 = "9223372036854771712\n"


@pytest.fixture(autouse=True)
def large_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(128)), raising=False)


def v2(own: str = "/") -> dict[str, str]:
    return {"proc/self/cgroup": f"0::{own}\n", "proc/self/mountinfo": V2_MOUNT}


def v1(own: str = "/", top: str = "/") -> dict[str, str]:
    groups = f"5:cpu,cpuacct:{own}\n4:memory:{own}\n3:cpuset:{own}\n1:name=systemd:/\n"
    return {"proc/self/cgroup": groups, "proc/self/mountinfo": V1_MOUNTS.format(top=top)}


def test_b078_without_a_control_group_the_host_counts(tree: Tree) -> None:
    root = tree({})
    assert limits.host_memory_bytes(root) == limits.Limit(amount=900 * GIB, source="memory of the host")
    assert limits.cores(root) == limits.Limit(amount=128, source="CPUs of the host")


def test_b078_v2_limit_of_the_own_group(tree: Tree) -> None:
    root = tree(
        v2() | {"sys/fs/cgroup/memory.max": f"{90 * GIB}\n", "sys/fs/cgroup/cpu.max": "1200000 100000\n"}
    )
    assert limits.host_memory_bytes(root).amount == 90 * GIB
    assert limits.host_memory_bytes(root).source == "cgroup v2 memory.max of / (90.0 GiB)"
    assert limits.cores(root) == limits.Limit(amount=12, source="cgroup v2 cpu.max of / (12 CPUs)")


def test_b078_v2_a_tighter_ancestor_counts(tree: Tree) -> None:
    files = {
        "sys/fs/cgroup/pod/memory.max": f"{16 * GIB}",
        "sys/fs/cgroup/pod/job/memory.max": f"{64 * GIB}",
        "sys/fs/cgroup/pod/cpu.max": "400000 100000",
        "sys/fs/cgroup/pod/job/cpu.max": "max 100000",
    }
    root = tree(v2("/pod/job") | files)
    assert limits.host_memory_bytes(root).source == "cgroup v2 memory.max of /pod (16.0 GiB)"
    assert limits.cores(root).amount == 4


def test_b078_v2_max_is_no_limit(tree: Tree) -> None:
    root = tree(v2() | {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/cpu.max": "max 100000\n"})
    assert limits.host_memory_bytes(root).source == "memory of the host"
    assert limits.cores(root).source == "CPUs of the host"


def test_v2_memory_high_is_a_limit_too(tree: Tree) -> None:
    root = tree(v2() | {"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/memory.high": str(8 * GIB)})
    assert limits.host_memory_bytes(root).amount == 8 * GIB


@pytest.mark.parametrize(("quota", "expected"), [("50000", 1), ("250000", 2), ("100000", 1)])
def test_b078_part_of_a_cpu_rounds_down_to_at_least_one(tree: Tree, quota: str, expected: int) -> None:
    assert limits.cores(tree(v2() | {"sys/fs/cgroup/cpu.max": f"{quota} 100000"})).amount == expected


def test_b078_v1_limits_and_quota(tree: Tree) -> None:
    folder = "sys/fs/cgroup/cpu,cpuacct/box"
    files = {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(2 * GIB),
        f"{folder}/cpu.cfs_quota_us": "600000",
        f"{folder}/cpu.cfs_period_us": "100000",
    }
    root = tree(v1("/box") | files)
    assert limits.host_memory_bytes(root).source == "cgroup v1 memory.limit_in_bytes of /box (2.0 GiB)"
    assert limits.cores(root) == limits.Limit(amount=6, source="cgroup v1 cpu.cfs_quota_us of /box (6 CPUs)")


def test_b078_v1_unlimited_is_no_limit(tree: Tree) -> None:
    folder = "sys/fs/cgroup/cpu,cpuacct"
    files = {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": UNLIMITED_V1,
        f"{folder}/cpu.cfs_quota_us": "-1",
        f"{folder}/cpu.cfs_period_us": "100000",
    }
    root = tree(v1() | files)
    assert limits.host_memory_bytes(root).source == "memory of the host"
    assert limits.cores(root).source == "CPUs of the host"


def test_b078_v1_inside_a_container_the_mount_is_the_group(tree: Tree) -> None:
    """Docker mounts its own group: `/proc/self/cgroup` names a path of the host."""
    files = {"sys/fs/cgroup/memory/memory.limit_in_bytes": str(4 * GIB)}
    root = tree(v1(own="/docker/abc", top="/docker/abc") | files)
    assert limits.host_memory_bytes(root).amount == 4 * GIB


def test_b078_a_group_outside_the_mount_falls_back_to_the_mount(tree: Tree) -> None:
    root = tree(v2(own="/../../elsewhere") | {"sys/fs/cgroup/memory.max": str(4 * GIB)})
    assert limits.host_memory_bytes(root).amount == 4 * GIB


def test_b078_hybrid_host_reads_both_versions(tree: Tree) -> None:
    files = v1("/box")
    files["proc/self/cgroup"] += "0::/box\n"
    files["proc/self/mountinfo"] += V2_MOUNT.replace("/sys/fs/cgroup ", "/sys/fs/cgroup/unified ")
    files["sys/fs/cgroup/memory/box/memory.limit_in_bytes"] = str(8 * GIB)
    files["sys/fs/cgroup/unified/box/memory.max"] = str(6 * GIB)
    assert limits.host_memory_bytes(tree(files)).source == "cgroup v2 memory.max of /box (6.0 GiB)"


def test_b078_affinity_and_cpusets_count(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree(v2() | {"sys/fs/cgroup/cpuset.cpus.effective": "0-7,16\n"})
    assert limits.cores(root) == limits.Limit(amount=9, source="cgroup v2 cpuset.cpus.effective of /")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 4}, raising=False)
    assert limits.cores(root) == limits.Limit(amount=2, source="CPU affinity of this process")


@pytest.mark.parametrize(("text", "count"), [("0", 1), ("0-3", 4), ("0-1,4,6-7", 5)])
def test_cpu_lists_are_counted(text: str, count: int) -> None:
    assert cgroup.count_cpus(text) == count


def test_this_machine_has_limits_with_sources() -> None:
    memory, cores = limits.host_memory_bytes(), limits.cores(Path("/"))
    assert memory.amount > 0
    assert memory.source
    assert 1 <= cores.amount <= 128

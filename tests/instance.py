"""A rented instance made of files: the folders, marks and commands of an AutoDL container below a root."""

import os
from dataclasses import dataclass
from pathlib import Path

GIB = 2**30
_SMI = """#!/bin/sh
case "$*" in
  "-L") {listed} ;;
  *--query-gpu=index,uuid*) {by_id} ;;
  *--query-gpu=index,memory.total,compute_cap*) {by_capability} ;;
  "topo -m") cat {topology} ;;
  *) echo "| NVIDIA-SMI {driver}    Driver Version: {driver}    CUDA Version: {cuda} |" ;;
esac
"""


@dataclass(frozen=True, kw_only=True)
class Instance:
    """The root folder, and an environment as a shell on it would have."""

    root: Path
    environ: dict[str, str]

    @property
    def data_disk(self) -> Path:
        return self.root / "root/autodl-tmp"

    @property
    def calls(self) -> list[str]:
        """Every call of the pretended shutdown: its arguments."""
        log = self.root / "shutdown.log"
        return log.read_text().splitlines() if log.exists() else []


def make(
    root: Path, *, num_gpus: int = 1, memory_bytes: int = 90 * GIB, cpu_quota: str = "1200000 100000"
) -> Instance:
    """Folders, marks, control groups, and a `shutdown` that only writes down that it was called."""
    for name in ("root/autodl-tmp", "root/autodl-pub", "root/autodl-fs", "root/tf-logs", "dev/shm", "bin"):
        (root / name).mkdir(parents=True)
    _write(root / "etc/autodl-motd", "AutoDL\n")
    _write(root / "etc/network_turbo", "export https_proxy=http://172.16.0.1:12798\n")
    _program(root / "usr/bin/shutdown", f'#!/bin/sh\necho "called: $*" >> {root}/shutdown.log\n')
    for index in range(num_gpus):
        _write(root / f"dev/nvidia{index}", "")
    _control_groups(root, memory_bytes, cpu_quota)
    environ = {
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root / "root"),
        "LAUNCHER_ROOT": str(root),
        "AutoDLContainerUUID": "0a1b2c",
        "AutoDLRegion": "west-B",
    }
    return Instance(root=root, environ=environ)


def _control_groups(root: Path, memory_bytes: int, cpu_quota: str) -> None:
    _write(root / "proc/meminfo", f"MemTotal: {1000 * 2**20} kB\n")
    _write(root / "proc/self/cgroup", "0::/\n")
    mounted = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    _write(root / "proc/self/mountinfo", f"23 1 8:1 / / rw - overlay overlay rw\n{mounted}")
    _write(root / "sys/fs/cgroup/memory.max", f"{memory_bytes}\n")
    _write(root / "sys/fs/cgroup/cpu.max", f"{cpu_quota}\n")


def add_smi(
    instance: Instance, cards: list[tuple[str, int, str]], *, topology: str = "", driver: str = "580.65.06"
) -> None:
    """An nvidia-smi that answers as a real one: (name, MiB, capability) a card."""
    text = instance.root / "topology.txt"
    text.write_text(topology)
    lines = {"listed": [], "by_id": [], "by_capability": []}  # type: dict[str, list[str]]
    for index, (name, mib, capability) in enumerate(cards):
        lines["listed"].append(f"GPU {index}: {name} (UUID: GPU-{index})")
        lines["by_id"].append(f"{index}, GPU-{index}, {mib}, {name}")
        lines["by_capability"].append(f"{index}, {mib}, {capability}, {driver}, {name}")
    said = {key: "; ".join(f"echo '{line}'" for line in found) or ":" for key, found in lines.items()}
    script = _SMI.format(**said, topology=text, driver=driver, cuda="13.0")
    _program(instance.root / "bin/nvidia-smi", script)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _program(path: Path, text: str) -> None:
    _write(path, text)
    path.chmod(0o755)

"""Starts training as a person would, on CPU processes, and reads back what a run left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from launcher.hardware.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
RUN = "launcher/run.py"


def starter(backend: str, processes: int = 2) -> list[str]:
    """The command line in front of the recipe for a backend."""
    if backend == "single_gpu":
        return [sys.executable, RUN]
    if backend == "multi_gpu":
        tool = [sys.executable, "-m", "torch.distributed.run", f"--master_port={free_port()}"]
        return [*tool, f"--nproc_per_node={processes}", RUN]
    config = f"accelerate_configs/{backend}.yaml"
    tool = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", config]
    return [*tool, "--main_process_port", str(free_port()), "--num_processes", str(processes), RUN]


def environment() -> dict[str, str]:
    """No GPU, no network, one thread: another number of threads adds up in another order."""
    return os.environ | {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def start(
    command: list[str], *, timeout_s: float = 900, cwd: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run to the end from the repository's root, without a GPU and without a network."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def trained(
    command: list[str], *, timeout_s: float = 900, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`start`, asserting success and showing the end of its output otherwise."""
    done = start(command, timeout_s=timeout_s, **variables)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done


def metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def losses(run: Path) -> list[float]:
    """The logged training losses, in the order of steps."""
    return [line["loss"] for line in metrics(run) if "loss" in line]


def weights(folder: Path) -> dict[str, Any]:
    """All tensors of a model folder or a checkpoint."""
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    assert files, f"no weights in {folder}"
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


def distance(left: dict[str, Any], right: dict[str, Any]) -> float:
    """The norm of the difference of two sets of tensors."""
    assert left.keys() == right.keys()
    return float(sum(((left[name].double() - right[name].double()) ** 2).sum() for name in left)) ** 0.5

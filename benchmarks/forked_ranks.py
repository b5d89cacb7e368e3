"""Ranks of one machine in seconds: forks of a process that has imported everything, one answer each.

Forks start with nothing live that counts, so single runs are measured in one too. The parent may start no
thread of its own: the forks would miss it.
"""

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launcher.hardware.ports import free_port

TIMEOUT_S = 300.0


def warm_up() -> None:
    """Import what ranks need, on one thread."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import torch

    torch.set_num_threads(1)
    from launcher.backends import fsdp_torch, multi_gpu_torch, zero3_torch, zero_torch
    from launcher.memory import trace_profile_torch

    assert all((fsdp_torch, multi_gpu_torch, zero3_torch, trace_profile_torch))
    zero_torch.import_deepspeed("cpu")


def in_forks(work: Callable[[int], Any], num_ranks: int, *, timeout_s: float = TIMEOUT_S) -> list[Any]:
    """`work(rank)` of every rank, each in a fork; what it returns comes back as JSON.

    Raises RuntimeError with a rank's last words where it fails, or outlives `timeout_s`.
    """
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        files = [Path(folder) / str(rank) for rank in range(num_ranks)]
        pids = [_fork(work, rank, num_ranks, port, file) for rank, file in enumerate(files)]
        codes = _wait(pids, timeout_s)
        for rank, code in enumerate(codes):
            if code:
                said = files[rank].with_suffix(".log").read_text(errors="replace")
                raise RuntimeError(f"rank {rank} ended with {code}: {said[-3000:]}")
        return [json.loads(file.read_text()) for file in files]


def _fork(work: Callable[[int], Any], rank: int, num_ranks: int, port: int, file: Path) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        log = os.open(file.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(num_ranks)}
        os.environ |= {"LOCAL_WORLD_SIZE": str(num_ranks), "OMP_NUM_THREADS": "1"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        file.write_text(json.dumps(work(rank)))
        code = 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _wait(pids: list[int], timeout_s: float) -> list[int]:
    """Exit codes; once one has failed the others are ended, for they wait for it."""
    codes: dict[int, int] = {}
    deadline = time.monotonic() + timeout_s
    while len(codes) < len(pids):
        for pid in (each for each in pids if each not in codes):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
        if any(codes.values()) or time.monotonic() > deadline:
            for pid in (each for each in pids if each not in codes):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return [codes[pid] for pid in pids]

"""Ranks of one machine in seconds: forks of a process that has imported everything, one answer each.

Forks start with nothing live that counts, so single runs are measured in one too. The parent may start no
thread of its own: the forks would miss it.
"""

import json
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from launcher.hardware.ports import free_port
from launcher.rehearse.forked import Forked


def warm_up() -> None:
    """Import what ranks need, on one thread."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import torch

    torch.set_num_threads(1)
    from launcher.backends import fsdp_torch, multi_gpu_torch, zero3_torch, zero_torch
    from launcher.memory import trace_profile_torch

    assert all((fsdp_torch, multi_gpu_torch, zero3_torch, trace_profile_torch))
    zero_torch.import_deepspeed("cpu")


def in_forks(work: Callable[[int], Any], num_ranks: int) -> list[Any]:
    """`work(rank)` of every rank, each in a fork; what it returns comes back as JSON.

    Raises RuntimeError with the ranks' last words where one fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        files = [folder / str(rank) for rank in range(num_ranks)]
        works = [partial(_answer, work, rank, num_ranks, port, file) for rank, file in enumerate(files)]
        with Forked(works, folder / "said.log") as running:
            code = running.wait()
        if code:
            raise RuntimeError(f"a rank ended with {code}: {running.text[-3000:]}")
        return [json.loads(file.read_text()) for file in files]


def _answer(work: Callable[[int], Any], rank: int, num_ranks: int, port: int, file: Path) -> int:
    """In the fork. A rank alone gets a rank's variables too: it is measured in a group of its own."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(num_ranks)}
    os.environ |= {"LOCAL_WORLD_SIZE": str(num_ranks), "OMP_NUM_THREADS": "1"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    file.write_text(json.dumps(work(rank)))
    return 0

"""Runs of several ranks in seconds: every rank is a fork of a process that has imported everything already.

The ranks get what torchrun would give them and run the same code as under it, from the command line on; one
rank's end ends the others, as a starter sees to it.
"""

import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.hardware.ports import free_port

GRACE_S = 8.0
RANK_FAILED_S = 3.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Exit codes by rank (negative: a signal), and what the ranks printed."""

    codes: list[int]
    text: str

    @property
    def succeeded(self) -> bool:
        """Whether every rank ended well."""
        return not any(self.codes)


def warm_up() -> None:
    """Import what ranks need. Nothing here may start a thread: the forks would miss it."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import torch

    torch.set_num_threads(1)
    import accelerate
    import deepspeed
    import peft
    import transformers

    import launcher.train.rank
    from launcher.backends import fsdp_torch, multi_gpu_torch, single_gpu_torch, zero3_torch, zero_torch

    assert all((accelerate, deepspeed, peft, transformers, launcher.train.rank))
    assert all((fsdp_torch, multi_gpu_torch, single_gpu_torch, zero3_torch, zero_torch))


def run_ranks(
    words: Sequence[str],
    *,
    num_ranks: int,
    log: Path,
    install: Callable[[int], Any] = lambda rank: None,
    meanwhile: Callable[[list[int]], None] = lambda pids: None,
    life: Callable[[], int] | None = None,
    timeout_s: float = 900.0,
) -> Ended:
    """Run `launcher/run.py` with these words. `install(rank)` puts faults into a rank before it starts.

    `life` is what a rank does instead of that.

    `meanwhile` is called with the pids once all ranks have started. Whatever outlives `timeout_s` is killed
    and counts as -9.
    """
    port = free_port()
    with log.open("wb") as file:
        pids = [
            _fork(words, rank, num_ranks, port, file.fileno(), install, life) for rank in range(num_ranks)
        ]
        meanwhile(pids)
        codes = _wait(pids, timeout_s)
    return Ended(codes=codes, text=log.read_text(errors="replace"))


def _fork(
    words: Sequence[str],
    rank: int,
    num_ranks: int,
    port: int,
    output: int,
    install: Callable[[int], Any],
    life: Callable[[], int] | None,
) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        sys.__stderr__, sys.__stdout__ = sys.stderr, sys.stdout
        warnings.resetwarnings()  # a test's turn warnings into errors
        os.environ.update(
            OMP_NUM_THREADS="1",
            CUDA_VISIBLE_DEVICES="",
            HF_HUB_OFFLINE="1",
            TOKENIZERS_PARALLELISM="false",
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(num_ranks),
            LOCAL_WORLD_SIZE=str(num_ranks),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
        )
        if num_ranks > 1:  # alone it is python that starts, whose ranks keep to the threads they are given
            os.environ["TORCHELASTIC_RUN_ID"] = "none"
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores both
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        _keep_to_one_thread()
        install(rank)
        from launcher.process.rank_process import run_as_rank

        code = run_as_rank(list(words)) if life is None else life()
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _keep_to_one_thread() -> None:
    """Whatever share of the cores a rank would take: a pool that its parent had did not survive the fork."""
    import torch

    torch.set_num_threads(1)
    torch.set_num_threads = lambda count: None


def _wait(pids: list[int], timeout_s: float) -> list[int]:
    codes: dict[int, int] = {}
    deadline = time.monotonic() + timeout_s
    asked = False
    while len(codes) < len(pids):
        for pid in [each for each in pids if each not in codes]:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
        left = [pid for pid in pids if pid not in codes]
        if any(codes.values()) and not asked:
            asked, deadline = True, min(deadline, time.monotonic() + RANK_FAILED_S + GRACE_S)
            time.sleep(RANK_FAILED_S / 3)
            _send(left, signal.SIGTERM)
        if time.monotonic() > deadline:
            _send(left, signal.SIGKILL)
        time.sleep(0.02)
    return [codes[pid] for pid in pids]


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # one that was stopped hears nothing
        except ProcessLookupError:
            continue

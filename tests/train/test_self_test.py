"""B059: ranks that have met but do not hear one another end with a verdict, not with a hang."""

import os
import subprocess
import sys

import pytest

from launcher.errors import HardwareError
from launcher.hardware.ports import free_port
from launcher.train.self_test import _verdict
from tests.launching import ROOT

RANK = """
import os, sys, time
from launcher.errors import HardwareError
from launcher.facts import Machine, Starter
from launcher.train.world import join, leave
rank, waits = int(sys.argv[1]), sys.argv[2] == "silent"
starter = Starter(name="torchrun", rank=rank, local_rank=rank, world_size=2)
if rank == 1 and waits:
    import torch.distributed as dist
    dist.init_process_group("gloo", rank=1, world_size=2)
    print("joined", flush=True)
    sys.stdin.read()
    os._exit(0)
try:
    limit = 1.0 if waits else 300.0
    cpu = Machine(device="cpu", num_gpus=0)
    world = join(starter, cpu, needs_group=False, self_test_timeout_s=limit)
    leave(world, failed=False)
    print("heard", flush=True)
except HardwareError as error:
    print(error, flush=True)
    os._exit(3)
"""


def two_ranks(second: str) -> tuple[int, str]:
    """Exit code and output of the first of two ranks; the second does the same, or stays silent."""
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environment |= {"CUDA_VISIBLE_DEVICES": ""}

    def start(rank: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", RANK, str(rank), second]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)

    ranks = [start(rank) for rank in (0, 1)]
    try:
        said, _ = ranks[0].communicate(timeout=600)
        ranks[1].communicate(timeout=600)  # closes its input: the silent one ends too
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return ranks[0].returncode, said


def test_b059_a_rank_that_never_comes_is_told_after_the_timeout() -> None:
    code, said = two_ranks("silent")
    assert code == 3, said
    assert "first sum over 2 ranks" in said
    assert "no answer within 1 s" in said
    assert "NCCL_P2P_DISABLE=1" in said


def test_ranks_that_hear_one_another_go_on() -> None:
    assert two_ranks("talks") == (0, "heard\n")


@pytest.mark.parametrize(("answer", "said"), [(3.0, "gave 3"), ("NCCL error", "NCCL error")])
def test_a_wrong_sum_and_a_failure_are_told_too(answer: float | str, said: str) -> None:
    text = str(HardwareError(_verdict("cuda", 2, answer)))
    assert said in text
    assert "type:  NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1" in text

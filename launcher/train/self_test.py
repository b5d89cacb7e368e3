"""One sum over all ranks before anything is loaded: cards that cannot hear one another hang later."""

from threading import Thread

import torch
import torch.distributed as dist

from launcher.errors import HardwareError, Problem

TIMEOUT_S = 20.0
_WAY_OUT = {
    "cuda": (
        "cards whose driver offers a peer access that the board has; `nvidia-smi topo -p2p r` shows it",
        "NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1 in front of the same command (NCCL_DEBUG=INFO says more)",
    ),
    "cpu": (
        "every rank alive, on one network interface",
        "GLOO_SOCKET_IFNAME=lo in front of the same command (NCCL_P2P_DISABLE=1 matters on cards only)",
    ),
}


def require_all_ranks_heard(device: torch.device, num_ranks: int, *, timeout_s: float = TIMEOUT_S) -> None:
    """Add one over all ranks. Raises HardwareError where that takes too long, fails, or gives another sum.

    In a thread: both making the communicator and waiting for it can block for ever.
    """
    found: list[float | str] = []
    thread = Thread(target=_add_ones, args=(device, found), name="all-reduce self-test", daemon=True)
    thread.start()
    thread.join(timeout_s)
    answer = found[0] if found else f"no answer within {timeout_s:g} s"
    if answer != num_ranks:
        raise HardwareError(_verdict(device.type, num_ranks, answer))


def _add_ones(device: torch.device, found: list[float | str]) -> None:
    try:
        ones = torch.ones(1, device=device)
        dist.all_reduce(ones)
        found.append(float(ones))
    except RuntimeError as error:
        found.append(str(error).strip().partition("\n")[0][:200])


def _verdict(device_type: str, num_ranks: int, answer: float | str) -> Problem:
    right, typed = _WAY_OUT["cuda" if device_type == "cuda" else "cpu"]
    said = f"gave {answer:g}" if isinstance(answer, float) else answer
    return Problem(
        where=f"first sum over {num_ranks} ranks",
        what=f"the ranks have met, but one added up on each: {said}",
        right=f"{num_ranks}: {right}",
        type=typed,
    )

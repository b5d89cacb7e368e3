"""The processes of one run: who this is, how they agree, and how they part cleanly."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from launcher import heartbeat
from launcher.errors import LauncherError, LaunchMismatch, Problem
from launcher.facts import Machine, Starter
from launcher.hardware.ports import free_port
from launcher.train.self_test import TIMEOUT_S, require_all_ranks_heard

T = TypeVar("T")
_LONGEST_S = 7 * 24 * 3600.0


@dataclass(frozen=True, kw_only=True)
class World:
    """This rank among `num_ranks`, and its device. `group`: none for the one that all work is done in."""

    rank: int
    num_ranks: int
    device: torch.device
    group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this rank speaks and writes for all."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait for every rank."""
        if dist.is_initialized():
            dist.barrier(group=self.group)

    def gather(self, value: T) -> list[T]:
        """Every rank's value, in the order of ranks, on every rank."""
        if self.num_ranks == 1:
            return [value]
        found: list[Any] = [None] * self.num_ranks
        dist.all_gather_object(found, value, group=self.group)
        return found

    def broadcast(self, value: T) -> T:
        """The first rank's value."""
        return self.gather(value)[0]

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor summed over ranks, in place."""
        if self.num_ranks > 1:
            dist.all_reduce(tensor)
        return tensor

    def agreed(self, work: Callable[[], T]) -> T:
        """Do the work on every rank; if it fails on one, every rank raises that rank's error.

        So a person reads one message, and no rank is left waiting for another that has stopped.
        """
        result: T | None = None
        problem: LauncherError | None = None
        try:
            result = work()
        except LauncherError as error:
            problem = error
        failed = [error for error in self.gather(problem) if error is not None]
        if failed:
            raise failed[0]
        return result  # type: ignore[return-value]


def join(
    starter: Starter, machine: Machine, *, needs_group: bool, self_test_timeout_s: float = TIMEOUT_S
) -> World:
    """Join the process group that the starter prepared; one process joins only where its backend asks.

    Raises LaunchMismatch where the group has another size than the starter said, HardwareError where
    the ranks do not hear one another.
    """
    device = torch.device("cpu")
    if machine.device == "cuda":
        device = torch.device("cuda", starter.local_rank)
        torch.cuda.set_device(device)
    if starter.world_size > 1 or needs_group:
        _alone_defaults(starter)
        backend = "nccl" if device.type == "cuda" else "gloo"
        dist.init_process_group(
            backend,
            timeout=_timeout(),
            rank=starter.rank,
            world_size=starter.world_size,
            store=_store_of_a_restart(starter),
        )
        _check_size(starter)
    if starter.world_size > 1:
        require_all_ranks_heard(device, starter.world_size, timeout_s=self_test_timeout_s)
    return World(rank=starter.rank, num_ranks=starter.world_size, device=device)


def _timeout() -> timedelta:
    """Longer than the heartbeat's: whoever watches names the rank that stands still, a collective cannot."""
    return timedelta(seconds=min(heartbeat.timeout_s(os.environ), _LONGEST_S) + 600)


def _alone_defaults(starter: Starter) -> None:
    """A group of one needs an address too; a free port, whatever a starter's fixed default is.

    torchrun keeps the group's store itself, at the port that it names: one of our own would never answer.
    """
    os.environ.setdefault("LOCAL_RANK", str(starter.local_rank))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    if starter.world_size == 1 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))


def _store_of_a_restart(starter: Starter) -> Store | None:
    """Where ranks that torchrun started again find each other; None: where the environment says.

    torchrun keeps one store for all its restarts on a machine (torch 2.13): a rank that is early would find
    the address that a lost one left there. Machines count their restarts apart, so several keep to torch's.
    """
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    is_kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if not is_kept or count == "0" or starter.local_world_size != starter.world_size:
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, starter.world_size, is_master=False, timeout=_timeout())
    return PrefixStore(f"restart-{count}", store)


def _check_size(starter: Starter) -> None:
    if dist.get_world_size() != starter.world_size:
        raise LaunchMismatch(
            Problem(
                what=f"{starter.world_size} processes were started, the group has {dist.get_world_size()}",
                right="one group with every process in it",
                type="launcher run RECIPE --gpus N",
            )
        )


def leave(world: World, *, failed: bool) -> None:
    """Meet once more, then destroy the group: gloo aborts the interpreter at exit otherwise.

    After a failure nobody is waited for: the others may be gone.
    """
    if not dist.is_initialized():
        return
    if not failed:
        world.barrier()
    dist.destroy_process_group()

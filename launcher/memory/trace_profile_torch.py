"""The tracker against an independent truth: torch.profiler's memory events of the same real CPU run.

`python -m` this file: one rank, started by hand or by torchrun; the request as JSON in the first argument,
both figures by phase as one line of JSON on stdout.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import _functional_collectives
from torch.futures import Future
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import _disable_current_modes

from launcher.backends.options import BACKENDS
from launcher.memory.trace_log import TraceLog
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_torch import record

PATIENCE_S = 60.0
_PREFIX = "phase "
_PHASES = {"load": ("load",), "step": ("forward", "backward"), "optimizer": ("optimizer",)} | {
    "evaluate": ("evaluate",),
    "save": ("save",),
}


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Bytes at a phase's worst moment, by the tracker and by the profiler."""

    tracked: int
    profiled: int

    @property
    def error(self) -> float:
        """Relative, of the tracker."""
        return self.tracked / self.profiled - 1


def compare(request: TraceRequest, *, rank: int = 0) -> dict[str, Compared]:
    """Run for real on this machine's CPU kernels, watched by both. By phase: load, step, optimizer, ..."""
    own = replace(request, kernels="cpu")
    gc.collect()  # what an earlier run left in cycles would count as freed here
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        log, _ = record(own, fake=False, rank=rank, around=lambda name: record_function(f"{_PREFIX}{name}"))
    events: Any = profiler.profiler
    profiled = profiled_peaks(events.kineto_results)
    tracked = tracked_peaks(log)
    return {name: Compared(tracked=tracked[name], profiled=profiled[name]) for name in _PHASES}


def tracked_peaks(log: TraceLog) -> dict[str, int]:
    """The tracker's worst moment of each phase, unrounded: CPU memory comes by the byte."""
    peaks = log.peaks(granularity=1)
    found = {}
    for name, phases in _PHASES.items():
        found[name] = max(p.num_bytes for mark, p in peaks.items() if mark.partition("/")[0] in phases)
    return found


def profiled_peaks(results: Any) -> dict[str, int]:
    """The profiler's running total of CPU bytes, its highest point inside each phase's spans."""
    spans = [
        (each.start_ns(), each.end_ns(), each.name().removeprefix(_PREFIX))
        for each in results.events()
        if each.name().startswith(_PREFIX)
    ]
    totals = _running_total(sorted(_changes(results.experimental_event_tree())))
    found: dict[str, int] = {}
    for begin, end, name in spans:
        found[name] = max(found.get(name, 0), _highest(totals, begin, end))
    return found


def _changes(events: Any) -> Iterator[tuple[int, int, int]]:
    """(when, address, bytes: negative where freed) of every allocation and free that the profiler saw."""
    waiting = [*events]
    while waiting:
        event = waiting.pop()
        waiting.extend(event.children)
        _, fields = event.typed
        if hasattr(fields, "alloc_size") and fields.device.type == "cpu":
            yield event.start_time_ns, fields.ptr, fields.alloc_size


def _running_total(changes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """(when, total before, total after). What was allocated earlier and is freed now does not count.

    The profiler does not see what a collective's own thread frees: an address that is given out again
    must have been freed before.
    """
    live: dict[int, int] = {}
    total, totals = 0, []
    for when, address, num_bytes in changes:
        before = total
        if num_bytes > 0:
            total += num_bytes - live.get(address, 0)
            live[address] = num_bytes
        else:
            total -= live.pop(address, 0)
        totals.append((when, before, total))
    return totals


def _highest(totals: list[tuple[int, int, int]], begin: int, end: int) -> int:
    inside = [max(before, after) for when, before, after in totals if begin <= when <= end]
    earlier = [after for when, _, after in totals if when < begin]
    return max(inside or earlier[-1:] or [0])


_COLLECTIVES = ("all_gather_into_tensor", "all_reduce", "broadcast", "reduce")
_FUNCTIONAL = ("all_gather_single", "reduce_scatter_single", "all_reduce")


@dataclass(frozen=True)
class _Done:
    """What an asynchronous collective answers here: it has ended, with these tensors."""

    tensors: list[Tensor]

    def get_future(self) -> Future[list[Tensor]]:
        found: Future[list[Tensor]] = Future()
        found.set_result(self.tensors)
        return found

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True


def _be_patient() -> None:
    """Let a collective's own thread drop its references first, so that this thread frees, and is seen."""
    for name in _COLLECTIVES:
        setattr(dist, name, _patient(getattr(dist, name)))
    dist.reduce_scatter_tensor = _scattered
    for name in _FUNCTIONAL:  # DTensor's
        setattr(_functional_collectives, name, _waited(getattr(_functional_collectives, name)))


def _patient(plain: Callable[..., Any]) -> Callable[..., Any]:
    def collective(*arguments: Any, **named: Any) -> Any:
        held = _holders((*arguments, *named.values()))
        plain(*arguments, **named | {"async_op": True}).wait()
        _until_dropped(held)
        return _Done([tensor for tensor, _ in held]) if named.get("async_op") else None

    return collective


def _scattered(
    output: Tensor, input: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """As gloo does it: on a copy, which its own thread would at times be the last to free, unseen."""
    with _disable_current_modes():
        whole = input.clone()
        held = _holders([whole])
        dist.all_reduce(whole, op=op, group=group)
        _until_dropped(held)
        output.copy_(whole.chunk(dist.get_world_size(group))[dist.get_rank(group)])
    return _Done([output]) if async_op else None


def _waited(plain: Callable[..., Any]) -> Callable[..., Any]:
    def collective(*arguments: Any, **named: Any) -> Any:
        held = _holders((*arguments, *named.values()))
        found = plain(*arguments, **named)
        if isinstance(found, _functional_collectives.AsyncCollectiveTensor):
            found = found.wait()
        _until_dropped([*held, (found, 3)])  # itself, its memory, and the look at that
        return found

    return collective


def _holders(arguments: Iterable[Any]) -> list[tuple[Tensor, int]]:
    """The tensors among a collective's arguments, and how many hold each."""
    return [(each, _holding(each)) for each in arguments if isinstance(each, Tensor)]


def _holding(tensor: Any) -> int:
    """How many hold the tensor or its memory: gloo's thread keeps pieces of a gathered one."""
    return int(tensor._use_count() + torch._C._storage_Use_Count(tensor.untyped_storage()._cdata))


def _until_dropped(held: Iterable[tuple[Tensor, int]]) -> None:
    """Until nobody holds these tensors who did not before: RuntimeError after `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while any(_holding(tensor) > holders for tensor, holders in held):
        if time.monotonic() > deadline:
            raise RuntimeError("a collective has ended, and its tensors are still held")
        time.sleep(0.0005)


def compare_in_group(request: TraceRequest, environ: Mapping[str, str]) -> dict[str, list[int]]:
    """`compare` as one rank of a starter's world; (tracked, profiled) by phase."""
    rank, ranks = int(environ.get("RANK", "0")), int(environ.get("WORLD_SIZE", "1"))
    if ranks > 1 or BACKENDS.get(request.backend).needs_group:
        dist.init_process_group("gloo")
        _be_patient()
    found = compare(replace(request, num_ranks=ranks), rank=rank)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    return {name: [each.tracked, each.profiled] for name, each in found.items()}


def main(arguments: list[str], environ: Mapping[str, str]) -> int:
    """One rank of a comparison."""
    found = compare_in_group(TraceRequest.from_json(arguments[0]), environ)
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))

"""A rank with a fault in it: `launcher/run.py`, except that something breaks at a chosen instant.

LAUNCHER_TEST_FAULTS holds a JSON list of faults: {"phase", "step" (from 1), "rank", "micro"}; "times" bounds
how often. Memory runs out for real: an allocation that no machine can serve fails in torch's own allocator.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def faults() -> list[dict[str, Any]]:
    """Those of this rank."""
    rank = int(os.environ.get("RANK", "0"))
    return [each for each in json.loads(os.environ["LAUNCHER_TEST_FAULTS"]) if each.get("rank", 0) == rank]


def exhaust() -> None:
    """Ask for an exbibyte."""
    import torch

    torch.empty(2**60, dtype=torch.uint8)


class Clock:
    """Where the run stands: the global step, counted from 1, and the micro batch in it."""

    step = 0
    micro = 0


def due(fault: dict[str, Any], clock: Clock) -> bool:
    """Whether the fault happens now; counts it."""
    if fault["step"] != clock.step or clock.micro < fault.get("micro", 0) or fault.get("times", 1) < 1:
        return False
    fault["times"] = fault.get("times", 1) - 1
    return True


def install(found: list[dict[str, Any]]) -> None:
    """Hang the faults into the places where memory really runs out."""
    from launcher.backends.strategy_torch import Strategy
    from launcher.step.module import TrainModule
    from launcher.train import retry

    clock = Clock()
    accumulate, forward = retry.accumulate, TrainModule.forward

    def counted(*words: Any, **named: Any) -> Any:
        clock.step, clock.micro = (0 if named.get("spoilt") else named["step"] + 1), 0
        return accumulate(*words, **named)

    def in_forward(self: Any, *words: Any, **named: Any) -> Any:
        clock.micro += 1
        _in_the_middle_of_backward(self, found, clock)
        _run("forward", found, clock) if self.training else _run("evaluation", found, clock)
        return forward(self, *words, **named)

    retry.accumulate = counted
    TrainModule.forward = in_forward  # type: ignore[method-assign]
    for kind in strategies(Strategy):
        before(kind, "backward", lambda: _run("backward", found, clock))
        before(kind, "step", lambda: _run("optimizer", found, clock))


def _in_the_middle_of_backward(module: Any, found: list[dict[str, Any]], clock: Clock) -> None:
    """Fail where the embedding gets its gradient: every other one has been handed over."""
    for fault in found:
        if fault["phase"] == "late backward" and due(fault, clock):
            weight = module.model.get_input_embeddings().weight
            handles: list[Any] = []
            handles.append(weight.register_hook(partial(_fail_once, handles)))


def _fail_once(handles: list[Any], gradient: Any) -> None:
    handles.pop().remove()
    exhaust()


def _run(phase: str, found: list[dict[str, Any]], clock: Clock) -> None:
    for fault in found:
        if fault["phase"] == phase and due(fault, clock):
            exhaust()


def strategies(kind: type) -> list[type]:
    """Every connected backend's class."""
    from launcher.backends import fsdp_torch, multi_gpu_torch, single_gpu_torch, zero3_torch, zero_torch

    assert fsdp_torch and multi_gpu_torch and single_gpu_torch and zero3_torch and zero_torch
    found = kind.__subclasses__()
    return [*found, *(below for each in found for below in _subclasses_of(each))]


def _subclasses_of(kind: type) -> list[type]:
    return [each for found in kind.__subclasses__() for each in (found, *_subclasses_of(found))]


def before(kind: type, name: str, act: Callable[[], None]) -> None:
    """Put `act` in front of a method that this class defines itself."""
    own = kind.__dict__.get(name)
    if own is None or getattr(own, "__isabstractmethod__", False):
        return

    def backward(self: Any, *words: Any, **named: Any) -> Any:  # named as what it stands for in a traceback
        act()
        return own(self, *words, **named)

    def step(self: Any, *words: Any, **named: Any) -> Any:
        act()
        return own(self, *words, **named)

    setattr(kind, name, {"backward": backward, "step": step}[name])


if __name__ == "__main__":
    from launcher.process.rank_process import run_as_rank

    install(faults())
    sys.exit(run_as_rank(sys.argv[1:]))

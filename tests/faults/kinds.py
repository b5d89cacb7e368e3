"""Faults by kind: what is hung into a rank, or done to its files, at a chosen step.

Everything breaks for real: allocations that no machine can serve, file sizes that the kernel refuses,
signals, bytes changed on the disk. `fault` is a dictionary: step (from 1), rank, seed and what a kind needs.
"""

import json
import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.rank import install as install_memory_faults

Fault = dict[str, Any]
PHASES = ("forward", "backward", "optimizer")


def kill_in_a_phase(fault: Fault) -> None:
    """SIGKILL at the beginning of a step's phase."""
    at(fault, lambda: os.kill(os.getpid(), signal.SIGKILL))


def kill_in_a_save(fault: Fault) -> None:
    """SIGKILL right before the n-th operation on files once that step is reached."""
    calls = {"left": fault["operation"]}

    def count(original: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **named: Any) -> Any:
            if fault.get("reached"):
                calls["left"] -= 1
                if calls["left"] <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(*words, **named)

        return counted

    at(fault, lambda: fault.update(reached=True))
    for place, name in ((os, "fsync"), (os, "rename"), (os, "replace"), (shutil, "rmtree"), (os, "mkdir")):
        setattr(place, name, count(getattr(place, name)))


def lose_a_rank(fault: Fault) -> None:
    """The process is gone without a word."""
    at(fault, lambda: os._exit(1))


def slow_down(fault: Fault) -> None:
    """A rank that is late, once."""
    at(fault, lambda: time.sleep(fault["seconds"]))


def wait_for(fault: Fault) -> None:
    """A rank that is at work until the file `until` is there."""

    def wait() -> None:
        while not Path(fault["until"]).exists():
            time.sleep(0.02)

    at(fault, wait)


def stop_responding(fault: Fault) -> None:
    """SIGSTOP: the process is there and does nothing."""
    at(fault, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def ask_to_end(fault: Fault) -> None:
    """SIGTERM, SIGINT or SIGHUP, as a machine that is shut down sends it."""
    at(fault, lambda: os.kill(os.getpid(), fault["signal"]))


def run_out_of_memory(fault: Fault) -> None:
    """An allocation fails in forward, backward, the optimizer or an evaluation."""
    install_memory_faults([fault])


def spoil_the_loss(fault: Fault) -> None:
    """One micro batch's loss is NaN, or infinite."""
    from launcher.step.module import TrainModule

    forward = TrainModule.forward

    def spoilt(self: Any, *words: Any, **named: Any) -> Any:
        loss, logits = forward(self, *words, **named)
        bad = fault.pop("due", False) and self.training
        return (loss * fault["value"] if bad else loss), logits

    TrainModule.forward = spoilt  # type: ignore[method-assign]
    at(fault | {"phase": "window"}, lambda: fault.update(due=True))


def fill_the_disk(fault: Fault) -> None:
    """From that step on, for as many saves, the kernel lets no file grow beyond a few kilobytes."""
    from launcher.train.checkpoint_write import Writing

    write = Writing.run

    def full(*words: Any, **named: Any) -> Any:
        if not fault.get("reached") or fault["times"] < 1:
            return write(*words, **named)
        fault["times"] -= 1
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault["bytes"], before[1]))
        try:
            return write(*words, **named)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    Writing.run = full  # type: ignore[method-assign]
    at(fault, lambda: fault.update(reached=True))


def turn_the_clock(fault: Fault) -> None:
    """The wall clock jumps by hours, back or forth."""
    now, shift = time.time, {"s": 0.0}
    time.time = lambda: now() + shift["s"]
    at(fault, lambda: shift.update(s=fault["hours"] * 3600.0))


def at(fault: Fault, act: Callable[[], Any]) -> None:
    """Act once, at the beginning of a phase of a step; `window` is before its first micro batch."""
    from launcher.backends.strategy_torch import Strategy
    from launcher.train import retry
    from tests.faults import rank as memory

    state = {"step": 0, "done": False}
    accumulate, phase = retry.accumulate, fault.get("phase", "window")

    def arrived(at: str) -> None:
        if at == phase and state["step"] == fault["step"] and not state["done"]:
            state["done"] = True
            act()

    def counted(*words: Any, **named: Any) -> Any:
        if not named.get("spoilt"):
            state["step"] = named["step"] + 1
        arrived("window")
        return accumulate(*words, **named)

    retry.accumulate = counted
    if phase == "forward":
        _before_forward(lambda: arrived("forward"))
    for kind in memory.strategies(Strategy):
        memory.before(kind, "backward", lambda: arrived("backward"))
        memory.before(kind, "step", lambda: arrived("optimizer"))


def _before_forward(act: Callable[[], None]) -> None:
    from launcher.step.module import TrainModule

    forward = TrainModule.forward

    def first(self: Any, *words: Any, **named: Any) -> Any:
        act()
        return forward(self, *words, **named)

    TrainModule.forward = first  # type: ignore[method-assign]


def damage(folder: Path, seed: int) -> str:
    """Change the newest checkpoint on the disk; what was done."""
    draw = random.Random(seed)
    steps = sorted(int(path.name.partition("-")[2]) for path in folder.glob("checkpoint-*"))
    newest = folder / f"checkpoint-{steps[-1]}"
    file = draw.choice(sorted(path for path in newest.iterdir() if path.name != "README"))
    how = draw.choice(["cut", "empty", "flip", "gone", "longer"])
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    elif how == "flip":
        place = draw.randrange(len(content))
        file.write_bytes(
            content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]
        )
    else:
        file.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "longer": content + b"\0"}[how])
    return f"{newest.name}/{file.name}: {how}"


def written(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a metrics file; the last may be half written."""
    found = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found

"""Which faults a seed makes: kinds and backends in turn, details drawn."""

import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.faults import kinds

BACKENDS = {
    "single_gpu": 1,
    "multi_gpu": 2,
    "zero1": 2,
    "zero2": 2,
    "zero2_offload": 2,
    "zero3": 2,
    "zero3_offload": 2,
    "fsdp2": 2,
    "fsdp2_offload": 2,
}
STEPS, SAVE_STEPS = 10, 2


@dataclass(frozen=True, kw_only=True)
class Kind:
    """How faults of a kind are drawn, installed and judged."""

    name: str
    draw: Callable[[random.Random], dict[str, Any]]
    install: Callable[[dict[str, Any]], None] | None = None
    exact: bool = True
    needs_two: bool = False
    damages: bool = False
    second_run: bool = False
    goes_on: bool = False  # the run must not even stop


def _phase(draw: random.Random) -> dict[str, Any]:
    return {"step": draw.randint(1, STEPS), "phase": draw.choice(kinds.PHASES)}


def _step(draw: random.Random) -> dict[str, Any]:
    return {"step": draw.randint(1, STEPS)}


def _memory(draw: random.Random) -> dict[str, Any]:
    phase = draw.choice(["forward", "backward", "optimizer", "evaluation"])
    step = draw.choice([4, 8, 10]) if phase == "evaluation" else draw.randint(1, STEPS)
    return {"step": step, "phase": phase, "micro": draw.choice([0, 1, 2])}


KINDS = {
    kind.name: kind
    for kind in (
        Kind(name="kill in a phase", draw=_phase, install=kinds.kill_in_a_phase),
        Kind(
            name="kill in a save",
            draw=lambda draw: {"step": draw.randint(1, STEPS), "operation": draw.randint(1, 6)},
            install=kinds.kill_in_a_save,
        ),
        Kind(name="kill by the clock", draw=lambda draw: {"step": 0, "after_s": draw.uniform(0.5, 6.0)}),
        Kind(name="lost rank", draw=_step, install=kinds.lose_a_rank, needs_two=True),
        Kind(
            name="slow rank",
            draw=lambda draw: _step(draw) | {"seconds": draw.uniform(0.3, 1.5)},
            install=kinds.slow_down,
            needs_two=True,
            goes_on=True,
        ),
        Kind(name="hung rank", draw=_step, install=kinds.stop_responding, needs_two=True),
        Kind(
            name="signal",
            draw=lambda draw: (
                _phase(draw) | {"signal": draw.choice([signal.SIGTERM, signal.SIGINT, signal.SIGHUP])}
            ),
            install=kinds.ask_to_end,
        ),
        Kind(name="out of memory", draw=_memory, install=kinds.run_out_of_memory, exact=False),
        Kind(
            name="not finite",
            draw=lambda draw: _step(draw) | {"value": draw.choice([float("nan"), float("inf")])},
            install=kinds.spoil_the_loss,
            exact=False,
            goes_on=True,
        ),
        Kind(
            name="disk full",
            draw=lambda draw: {"step": draw.randint(1, 6), "times": draw.choice([1, 2]), "bytes": 20_000},
            install=kinds.fill_the_disk,
            goes_on=True,
        ),
        Kind(
            name="damaged checkpoint", draw=lambda draw: _step(draw), install=kinds.lose_a_rank, damages=True
        ),
        Kind(
            name="wall clock",
            draw=lambda draw: _step(draw) | {"hours": draw.choice([-30.0, -2.0, 3.0, 40.0])},
            install=kinds.turn_the_clock,
            goes_on=True,
        ),
        Kind(
            name="two runs in one folder", draw=_step, install=kinds.wait_for, second_run=True, goes_on=True
        ),
        Kind(name="data gone", draw=_step, goes_on=True),
    )
}


@dataclass(kw_only=True)
class Case:
    """One fault and what came of it."""

    kind: str
    backend: str
    num_ranks: int
    fault: dict[str, Any]
    right: bool = False
    starts: int = 0
    lost_steps: int = 0
    said: str = ""
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def cases(count: int, seed: int, only: str | None = None) -> Iterator[Case]:
    """The list of faults of a seed: kinds and backends in turn, details drawn."""
    names = [name for name in KINDS if only is None or name == only]
    draw = random.Random(seed)
    order = list(BACKENDS)
    draw.shuffle(order)
    for index in range(count):
        kind = KINDS[names[index % len(names)]]
        backend = order[(index // len(names) + index) % len(order)]
        if kind.needs_two and BACKENDS[backend] < 2:
            backend = "multi_gpu"
        fault = kind.draw(draw) | {"seed": draw.randrange(2**31)}
        fault["rank"] = draw.randrange(BACKENDS[backend])
        yield Case(kind=kind.name, backend=backend, num_ranks=BACKENDS[backend], fault=fault)

"""Every plan worth a look: the levers' combinations times the micro batches that keep the global batch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from launcher.errors import HardwareError
from launcher.facts import Machine
from launcher.memory.of_recipe import rows_at_once, setting_of
from launcher.memory.setting import Setting
from launcher.models.shape import ModelShape
from launcher.plan.levers import BACKEND, DISTANCE, MICRO, Turn, turns, typed
from launcher.plan.micro_batch import MOST_ROWS, micro_batches
from launcher.plan.turned import turned
from launcher.plan.weights import weights_dtype
from launcher.precision import choose
from launcher.recipe.batch import solve
from launcher.recipe.schema import Recipe


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to run the recipe. `changes` are the keys that differ from what was asked."""

    setting: Setting
    backend: str
    changes: Mapping[str, Any]
    distance: int

    @property
    def typed(self) -> str:
        """The changes as words of a command line; empty for what was asked."""
        return typed(self.changes)


def candidates(
    recipe: Recipe, shape: ModelShape, machine: Machine, num_ranks: int, *, far: bool = False
) -> list[Candidate]:
    """All candidates, what was asked first. Raises BadValue where the ranks cannot make the global batch."""
    rows = recipe.training.global_batch_size
    solve(rows, None, num_ranks)
    sizes = micro_batches(rows // num_ranks)
    found: list[Candidate] = []
    for turn in turns(recipe, shape, num_ranks, on_card=machine.device == "cuda", far=far):
        setting = _setting(recipe, shape, machine, num_ranks, turn)
        if setting is not None:
            found += _cut(recipe, setting, turn, sizes, rows // num_ranks)
    return sorted(found, key=lambda each: each.distance)


def _cut(
    recipe: Recipe, setting: Setting, turn: Turn, sizes: list[int], rows_per_rank: int
) -> Iterator[Candidate]:
    """The micro batch is free where the recipe says auto, and a change of what was asked elsewhere."""
    asked = asked_micro(recipe, rows_per_rank)
    for size in sizes:
        free = asked is None or size == asked
        changes = turn.changes if free else {**turn.changes, MICRO: size}
        yield Candidate(
            setting=replace(
                setting,
                micro_batch=rows_at_once(recipe.data, size),
                accumulation_steps=rows_per_rank // size,
            ),
            backend=str(turn.changes.get(BACKEND, recipe.backend.name)),
            changes=changes,
            distance=turn.distance + (0 if free else DISTANCE[MICRO]),
        )


def asked_micro(recipe: Recipe, rows_per_rank: int) -> int | None:
    """The micro batch that the recipe's own bound gives; None for auto."""
    bound = recipe.training.per_device_train_batch_size
    if bound == "auto":
        return None
    return next(size for size in micro_batches(rows_per_rank, max(MOST_ROWS, bound)) if size <= bound)


def _setting(
    recipe: Recipe, shape: ModelShape, machine: Machine, num_ranks: int, turn: Turn
) -> Setting | None:
    """The turned recipe at one row a step; None where this machine refuses its precision."""
    wanted = turned(recipe, turn.changes)
    try:
        precision = choose(wanted.training.precision, machine).name
    except HardwareError:
        if not turn.changes:
            raise
        return None
    return setting_of(
        wanted,
        shape,
        backend=wanted.backend.name,
        num_ranks=num_ranks,
        micro_batch=1,
        precision=precision,
        weights_dtype=weights_dtype(wanted, precision)[0],
    )

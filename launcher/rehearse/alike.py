"""Which rehearsals the library needs: every recipe on one process and on a backend that shards, once each.

Two recipes whose shrunken recipe and tiny model are the same have the same rehearsal: a variant for another
card of the same precision is proven by its parent's.
"""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from launcher.backends.options import BACKENDS
from launcher.backends.support import Refused, cell
from launcher.models import catalogue
from launcher.recipe.load import load_recipe
from launcher.recipe.schema import Recipe
from launcher.rehearse.shrink import Stage, small_recipe
from launcher.rehearse.sizes import tiny

NUM_RANKS = 2
# The order in which recipes that name no backend of their own take turns.
SHARDING = ("zero3", "fsdp2", "zero2")
_STAGE = Stage(
    model=Path("model"), runs=Path("runs"), vocabulary_size=400, train_file=Path("t"), eval_file=Path("e")
)
# Replaced by the stand-in tokenizer's, or longer than any rehearsed row.
_NOT_REHEARSED = ("vocab_size", "max_position_embeddings", "num_params")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One rehearsal: the first of the recipes that it proves, on a backend with so many ranks."""

    recipes: tuple[str, ...]
    backend: str
    num_ranks: int

    @property
    def name(self) -> str:
        """The recipe that is rehearsed for all of them."""
        return self.recipes[0]


def cells(names: Iterable[str]) -> list[Cell]:
    """Every recipe in one cell of one process and in one cell that shards."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in names:
        for backend in ("single_gpu", sharding_backend(name)):
            found.setdefault((backend, what_is_rehearsed(name, backend)), []).append(name)
    return [
        Cell(recipes=tuple(alike), backend=backend, num_ranks=1 if backend == "single_gpu" else NUM_RANKS)
        for (backend, _), alike in found.items()
    ]


def what_is_rehearsed(name: str, backend: str) -> str:
    """All that makes a difference to the rehearsal of this recipe on this backend, as text."""
    recipe = _asked(name, backend)
    small = small_recipe(recipe, _STAGE).model_copy(update={"summary": ""})
    return small.model_dump_json() + _model(recipe.model.model_name_or_path)


def sharding_backend(name: str) -> str:
    """The recipe's own where it shards; else one of three that take it, alike recipes the same one."""
    recipe = load_recipe(name).recipe
    own = BACKENDS.get(recipe.backend.name)
    if own.sharding.optimizer_states and own.max_ranks is None:
        return own.name
    start = zlib.crc32(what_is_rehearsed(name, "single_gpu").encode()) % len(SHARDING)
    method, quantised = recipe.adapter.method, recipe.model.is_quantised
    turn = (*SHARDING[start:], *SHARDING[:start])
    return next(each for each in turn if not isinstance(cell(method, each, quantised=quantised), Refused))


def _asked(name: str, backend: str) -> Recipe:
    ranks = 1 if backend == "single_gpu" else NUM_RANKS
    return load_recipe(name, extra={"backend.name": backend, "hardware.gpus": ranks}).recipe


def _model(name: str) -> str:
    """The tiny model's sizes, and what the stand-in tokenizer is made like."""
    config = catalogue.config(name)
    if config is None:
        return name
    sizes = {key: value for key, value in tiny(config).items() if key not in _NOT_REHEARSED}
    return json.dumps([sizes, name.lower().endswith(("instruct", "chat", "-it"))], sort_keys=True)

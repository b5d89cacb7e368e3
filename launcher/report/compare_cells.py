"""What a comparison runs: every combination of the varied keys, each for every seed. No torch."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from launcher.errors import BadValue, Problem
from launcher.recipe.load import LoadedRecipe

_TYPE = "--vary adapter.method=full,lora"
_MOST_CELLS = 200


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A recipe's key and the values that it is given, as typed."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One setting of the varied keys with one seed; None: the recipe's own seed."""

    settings: tuple[tuple[str, str], ...]
    seed: int | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """As they are typed behind `launcher run`."""
        seed = () if self.seed is None else (f"training.seed={self.seed}",)
        return (*(f"{key}={value}" for key, value in self.settings), *seed)

    @property
    def label(self) -> str:
        """What tells the setting from the others: `method=lora lora_r=8`."""
        return " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in self.settings) or "as it is"

    @property
    def folder(self) -> str:
        """The run's name: the label as a file name, and the seed."""
        plain = re.sub(r"[^A-Za-z0-9=._-]+", "_", self.label).strip("_")
        if len(plain) > 80:
            plain = f"{plain[:60]}-{hashlib.sha256(plain.encode()).hexdigest()[:8]}"
        return plain if self.seed is None else f"{plain}-seed{self.seed}"


def read_axis(text: str) -> Axis:
    """`key=a,b,c`; commas inside brackets belong to a value. Raises BadValue for anything else."""
    key, equals, rest = text.partition("=")
    values = tuple(part.strip() for part in _split(rest))
    if not (key.strip() and equals and all(values)):
        raise _wrong(text, "no key with values", "key=value,value")
    if len(set(values)) != len(values):
        raise _wrong(text, "a value stands twice", "different values")
    return Axis(key=key.strip(), values=values)


def _wrong(text: str, what: str, right: str) -> BadValue:
    return BadValue(Problem(where=f"--vary {text}", what=what, right=right, type=_TYPE))


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def read_seeds(text: str) -> tuple[int, ...]:
    """`1,2,3`. Raises BadValue for what is no list of whole numbers."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts) or len(set(parts)) != len(parts):
        raise BadValue(
            Problem(
                where="--seeds",
                what=f"'{text}' is no list of different whole numbers",
                right="numbers with commas between",
                type="--seeds 1,2,3",
            )
        )
    return tuple(int(part) for part in parts)


def cells(axes: Sequence[Axis], seeds: Sequence[int] = ()) -> list[Cell]:
    """Every combination, seed by seed within it. Raises BadValue for a key that is varied twice."""
    keys = [axis.key for axis in axes]
    if len(set(keys)) != len(keys):
        raise _wrong(f"{keys[0]}=...", "a key is varied twice", "each key once, with all its values")
    combinations = product(*(axis.values for axis in axes))
    found = [
        Cell(settings=tuple(zip(keys, values, strict=True)), seed=seed)
        for values in combinations
        for seed in (seeds or (None,))
    ]
    if len(found) > _MOST_CELLS:
        raise _wrong(f"{keys[0]}=...", f"{len(found)} runs", f"at most {_MOST_CELLS} in one comparison")
    return found


def identity(loaded: LoadedRecipe) -> str:
    """What a finished cell must have been run with, so that it counts: the whole recipe but its place."""
    facts = loaded.recipe.model_dump(mode="json", exclude={"output_dir", "summary"})
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

"""`--sweep gpu=rtx3090,rtx4090 gpus=1,2,4`: a recipe on several cards, one line each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from launcher.backends.options import BACKENDS
from launcher.errors import BadValue, Problem, UnknownSetting
from launcher.hardware import catalog
from launcher.registry import nearest

KEYS = ("gpu", "gpus", "backend")


@dataclass(frozen=True, kw_only=True)
class Point:
    """One combination; None leaves the recipe's own."""

    gpu: str | None = None
    gpus: int | None = None
    backend: str | None = None


def read_sweep(words: Sequence[str]) -> list[Point]:
    """Every combination of the listed values, in order. Raises RecipeError for what is not known."""
    axes: dict[str, list[str]] = {}
    for word in words:
        key, equals, values = word.partition("=")
        if key not in KEYS:
            raise _unknown_key(key)
        axes[key] = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not axes[key]:
            raise _no_values(key)
    if not axes:
        raise _no_values("gpu")
    points = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    return [_point(each) for each in points]


def _point(values: dict[str, str]) -> Point:
    gpu, gpus, backend = values.get("gpu"), values.get("gpus"), values.get("backend")
    if gpu is not None:
        gpu = card_name(gpu, "--sweep gpu")
    if backend is not None:
        BACKENDS.get(backend, "--sweep backend")
    if gpus is not None and not (gpus.isdigit() and int(gpus) > 0):
        raise BadValue(
            Problem(
                where="--sweep gpus",
                what=f"'{gpus}' is no number of cards",
                right="1 or more",
                type="gpus=1,2,4",
            )
        )
    return Point(gpu=gpu, gpus=int(gpus) if gpus else None, backend=backend)


def card_name(text: str, where: str) -> str:
    """A card of the catalogue: its name, or the first one that has all of the name's parts.

    `a100_40` is a100_pcie_40: the slowest of those with that memory stands first. Raises UnknownSetting for
    a name that is not known, or that leaves the memory open.
    """
    if text in catalog.names():
        return text
    known = [catalog.get(name) for name in catalog.names() if _has_parts(name, text)]
    if not known:
        return catalog.get(text, where).name
    if len({gpu.marketed_gb for gpu in known}) > 1:
        raise UnknownSetting(
            Problem(
                where=where,
                what=f"'{text}' leaves the memory open",
                right=f"one of: {', '.join(gpu.name for gpu in known)}",
                type=f"{where.split()[-1]}={known[0].name}",
            )
        )
    return known[0].name


def _has_parts(name: str, text: str) -> bool:
    """Whether the parts between underscores stand in the name in this order."""
    known = iter(name.split("_"))
    return all(part in known for part in text.split("_"))


def _unknown_key(key: str) -> UnknownSetting:
    close = nearest(key, KEYS)
    return UnknownSetting(
        Problem(
            where="--sweep",
            what=f"unknown key '{key}'",
            right=f"one of: {', '.join(KEYS)}",
            type=f"--sweep {close or 'gpu'}=...",
        )
    )


def _no_values(key: str) -> BadValue:
    return BadValue(
        Problem(
            where="--sweep",
            what=f"{key} has no values",
            right="a list with commas",
            type="--sweep gpu=rtx3090,rtx4090 gpus=1,2,4",
        )
    )

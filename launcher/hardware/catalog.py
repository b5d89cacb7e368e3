"""The cards we know, one row each in `gpus.csv` beside this file.

The name a driver reports does not give the memory (a 3090 may be a 48 GB card), so a measured card
is found by both. Figures are datasheet or seen values; `usable_source` and `figures_source` say which:
A read in this card's own output, B inferred from such output, C computed. Prices are dated sightings.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from launcher.errors import Problem, UnknownSetting
from launcher.registry import nearest
from launcher.units import GIB, MIB

_FILE = Path(__file__).with_name("gpus.csv")
_SAME_MEMORY = 0.15


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One card: `usable_bytes` is what torch sees as total, `fp16_tflops` accumulates in fp32."""

    name: str
    smi_name: str
    architecture: str
    compute_capability: tuple[int, int]
    marketed_gb: int
    reported_bytes: int
    usable_bytes: int
    usable_source: str
    fp16_tflops: float
    memory_gb_per_s: float
    nvlink: Literal["none", "bridge", "yes", "unproven"]
    nvlink_gb_per_s: float
    p2p: Literal["no", "bridge", "pcie", "nvlink"]
    pcie: str
    min_cuda: str
    max_cuda: str
    price_cny_per_h: tuple[float, float] | None
    price_source: str
    rental_name: str
    figures_source: str
    note: str

    @property
    def has_bf16(self) -> bool:
        """Whether the card computes in bf16 itself; older ones only emulate it."""
        return self.compute_capability >= (8, 0)


@lru_cache(maxsize=1)
def _gpus() -> dict[str, Gpu]:
    with _FILE.open(encoding="utf-8", newline="") as file:
        return {row["name"]: _gpu(row) for row in csv.DictReader(file)}


def _gpu(row: dict[str, str]) -> Gpu:
    major, minor = row["compute_capability"].split(".")
    low, high = row["price_low_cny_per_h"], row["price_high_cny_per_h"]
    numbers = {
        "compute_capability": (int(major), int(minor)),
        "marketed_gb": int(row["marketed_gb"]),
        "reported_bytes": int(row["reported_mib"]) * MIB,
        "usable_bytes": int(float(row["usable_gib"]) * GIB),
        "fp16_tflops": float(row["fp16_tflops"]),
        "memory_gb_per_s": float(row["memory_gb_per_s"]),
        "nvlink_gb_per_s": float(row["nvlink_gb_per_s"]),
        "price_cny_per_h": (float(low), float(high)) if low else None,
    }
    texts = {key: row[key] for key in Gpu.__dataclass_fields__ if key not in numbers}
    return Gpu(**(texts | numbers))  # type: ignore[arg-type]


def names() -> list[str]:
    """Every known card, in the file's order."""
    return [*_gpus()]


def get(name: str, where: str = "hardware.gpu") -> Gpu:
    """The card of that name. Raises UnknownSetting with the nearest names."""
    known = _gpus()
    if name in known:
        return known[name]
    close = _alike(name, known) or "rtx3090"
    raise UnknownSetting(
        Problem(
            where=where,
            what=f"unknown GPU '{name}'",
            right=f"one of: {', '.join(known)}",
            type=f"{where} {close}" if where == "--gpu" else f"hardware.gpu={close}",
        )
    )


def _alike(name: str, known: Mapping[str, Gpu]) -> str | None:
    """The card that is meant by `RTX 4090`, `A6000` or `nvidia-h100`; else the nearest name."""
    wanted = _squeezed(name)
    for suits in (str.__eq__, str.endswith, str.startswith):
        if wanted and (found := next((each for each in known if suits(_squeezed(each), wanted)), None)):
            return found
    return nearest(name, known)


def _squeezed(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[^a-z0-9]", "", name.lower())


def find(smi_name: str, memory_bytes: int) -> Gpu | None:
    """The card whose driver name and measured total memory these are, or None.

    Several cards share a driver name: the one nearest in memory is taken, within 15 %, so that a
    doubled card is never taken for the plain one.
    """
    named = [gpu for gpu in _gpus().values() if _plain(gpu.smi_name) == _plain(smi_name)]
    near = sorted(named, key=lambda gpu: abs(gpu.usable_bytes - memory_bytes))
    if near and abs(near[0].usable_bytes - memory_bytes) <= _SAME_MEMORY * near[0].usable_bytes:
        return near[0]
    return None


def _plain(smi_name: str) -> str:
    """Drivers write the maker in front of some names and leave it out of others."""
    return smi_name.lower().removeprefix("nvidia").strip()

"""Cells of published tables as numbers: thousands' separators, `7B`, `4k`, `2x4`, units of memory."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launcher.hardware import catalog
from launcher.hardware.catalog import Gpu

_NUMBER = re.compile(r"-?\d+(?:[\d,_]*\d)?(?:\.\d+)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_ABSENT = re.compile(
    r"^\s*(none|no|not|n/?a|nan|null|false|off|disabled|unknown|unstated|[-?0.]*)\s*$", re.IGNORECASE
)
# Binary units, as drivers and torch print them, and decimal ones.
UNITS = {
    "bytes": 1, "byte": 1, "b": 1, "kb": 10**3, "kib": 2**10, "mb": 10**6, "mib": 2**20, "m": 2**20,
    "gb": 10**9, "gib": 2**30, "g": 2**30, "tb": 10**12, "tib": 2**40,
}  # fmt: skip
GIB = 2**30


def number(text: str | None) -> float | None:
    """The first number of a cell; None where there is none that is finite and not below zero."""
    match = _NUMBER.search(text or "")
    if not match:
        return None
    found = float(match.group(0).replace(",", "").replace("_", ""))
    return found if 0 <= found < 1e18 else None


def count(text: str | None) -> float | None:
    """As `number`, with `7B`, `350M`, `1.1e9`."""
    found = number(text)
    match = re.search(r"\d\s*([kKmMbBtT])(?![a-zA-Z])", text or "")
    scale = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
    return found * scale[match.group(1).lower()] if found is not None and match else found


def is_rounded(text: str | None) -> bool:
    """Whether a count was written short (`7B`, `7.2e9`): good for a check, not for the last digits."""
    if re.search(r"\d\s*[kKmMbB](?![a-zA-Z])", text or ""):
        return True
    found = number(text)
    return found is not None and len(f"{found:.0f}".rstrip("0")) < 5


def length(text: str | None) -> float | None:
    """Tokens: as `number`, with `4k` for 4,096."""
    found = number(text)
    match = re.search(r"\d\s*[kK](?![a-zA-Z])", text or "")
    return found * 1024 if found is not None and match else found


def product(text: str | None) -> float | None:
    """As `number`, with `2x4` and `2 nodes x 8 GPUs` for eight and sixteen."""
    match = re.search(r"(\d+)\D{0,12}?\s*[x×*]\s*(\d+)", text or "")
    return float(match.group(1)) * float(match.group(2)) if match else number(text)


def is_absent(text: str | None) -> bool:
    """Whether a cell says nothing, or no."""
    return bool(_ABSENT.match(text or ""))


def gib(row: Mapping[str, str]) -> float | None:
    """The row's own figure in GiB: `mem_gib`, else `mem_value` in `mem_unit`."""
    found = number(row.get("mem_gib"))
    if found is not None:
        return found
    value, unit = number(row.get("mem_value")), (row.get("mem_unit") or "").strip().lower()
    return value * UNITS[unit] / GIB if value is not None and unit in UNITS else None


def card_named(text: str) -> Gpu | None:
    """The catalogue's card of that name, where the name leaves nothing open (not: A100, V100)."""
    plain = re.sub(r"[^a-z0-9]", "", re.sub(r"nvidia|geforce|tesla|\d+\s*x\b", "", text.lower()))
    cards = {name.replace("_", ""): catalog.get(name) for name in catalog.names()}
    return next((cards[key] for key in (plain, f"rtx{plain}") if key in cards), None)

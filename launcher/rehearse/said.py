"""Reads a run back: what it said about itself, what it logged, and why it stopped."""

import json
import math
import re
from pathlib import Path
from typing import Any

_RULE = re.compile(r"^={20,}$", re.MULTILINE)
_RESUMED = re.compile(r"^resumed from \S*?checkpoint-(\d+) at step (\d+)", re.MULTILINE)
_TRAINS = re.compile(r"^trains [\d,]+ of [\d,]+ parameters", re.MULTILINE)
_PRECISION = re.compile(r"^precision (\w+: linear layers compute in \w+)", re.MULTILINE)
_SHARDED = re.compile(r"^sharded: (.+)", re.MULTILINE)
_LAST_LINES = 25


def precision(text: str) -> str:
    """What the run saw in its first forward pass."""
    return next(iter(_PRECISION.findall(text)), "")


def backend(text: str, name: str) -> str:
    """What the backend's own check found, before training began (zero2_offload speaks as zero2)."""
    before, trains, _ = text.partition("\ntrains ")
    lines = (line.partition(": ") for line in before.splitlines())
    found = [rest for word, _, rest in lines if word and name.startswith(word)]
    return found[-1] if trains and found else ""


def sharding(text: str) -> str:
    """How a divided parameter lies on the ranks; empty where nothing is divided."""
    return next(iter(_SHARDED.findall(text)), "")


def resumed_step(text: str) -> int | None:
    """The step that the run went on from."""
    match = _RESUMED.search(text)
    return int(match.group(2)) if match else None


def part_reached(text: str) -> str:
    """How far a failed run came, in words."""
    if "evaluation at step" in text:
        return "after an evaluation"
    return "while training" if _TRAINS.search(text) else "while building data, model, adapter and backend"


def message(text: str) -> str:
    """A failed run's own message: what stands between its rules, else the end of what it said."""
    parts = _RULE.split(text)
    framed = next((part.strip() for part in parts[1::2] if part.strip()), "")
    return framed or "\n".join(text.strip().splitlines()[-_LAST_LINES:])


def steps_logged(folder: Path) -> dict[int, dict[str, Any]]:
    """The logged training steps of a run folder by number; a line cut short is left out."""
    path = folder / "metrics.jsonl"
    if not path.is_file():
        return {}
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # cut short by a kill, or being written
            continue
        if "loss" in entry:
            found[int(entry["step"])] = entry
    return found


def all_finite(steps: dict[int, dict[str, Any]]) -> bool:
    """Whether every logged loss is a number; NaN and infinity are logged as null."""
    return bool(steps) and all(
        isinstance(entry["loss"], float | int) and math.isfinite(entry["loss"]) for entry in steps.values()
    )

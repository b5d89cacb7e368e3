"""What earlier runs of a recipe left behind: predicted against measured, from their `summary.json`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.hardware import catalog

SUMMARY = "summary.json"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One finished run. Bytes of one rank; rates of all ranks; None where it was not measured."""

    folder: str
    backend: str
    num_ranks: int
    micro_batch_size: int
    predicted_bytes: int | None
    measured_bytes: int | None
    predicted_tokens_per_s: float | None
    tokens_per_s: float | None


def records(output_dir: Path, recipe_name: str, gpu: str | None) -> list[Record]:
    """The runs of this recipe on this kind of card below `output_dir`, oldest first.

    `gpu` is a name of the catalogue, None for runs on a CPU. A summary that cannot be read, or that is
    older than these fields, is passed over.
    """
    files = sorted(output_dir.glob(f"*/{SUMMARY}"), key=lambda path: path.stat().st_mtime)
    return [record for path in files for record in _read(path, recipe_name, gpu)]


def _read(path: Path, recipe_name: str, gpu: str | None) -> Iterator[Record]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        plan = found["plan"]
        if plan["recipe_name"] == recipe_name and _card(plan) == gpu:
            yield _record(path.parent, found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return


def _card(plan: dict[str, Any]) -> str | None:
    """The card by driver name and memory, as a name of the catalogue."""
    if plan["device"] != "cuda":
        return None
    gpu = catalog.find(plan["gpu_name"], int(plan["gpu_memory_bytes"]))
    return gpu.name if gpu else str(plan["gpu_name"])


def _record(folder: Path, found: dict[str, Any]) -> Record:
    plan, memory, speed = found["plan"], found.get("memory", {}), found.get("throughput", {})
    measured = memory.get("measured", {})
    return Record(
        folder=str(folder),
        backend=str(plan["backend"]),
        num_ranks=int(plan["num_ranks"]),
        micro_batch_size=int(plan["micro_batch_size"]),
        predicted_bytes=memory.get("predicted", {}).get("peak_bytes"),
        measured_bytes=measured.get("peak_allocated_bytes") or measured.get("peak_resident_bytes"),
        predicted_tokens_per_s=speed.get("predicted_tokens_per_s"),
        tokens_per_s=speed.get("tokens_per_s"),
    )

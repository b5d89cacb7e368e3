"""The configurations of public models, for machines that cannot reach their config.json.

Facts only, in the words of each model's own configuration: type, depth, widths, heads. `num_params` is the
published count (decoders: the language model; encoders: with a head of two labels), against which a test
holds what is counted from the configuration. No torch.
"""

import difflib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("catalogue.json")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One configuration with the hub ids that share it; `num_params` where it is published for sure."""

    ids: tuple[str, ...]
    num_params: int | None
    config: dict[str, Any]


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, in the file's order: decoders by family, then encoders."""
    rows = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(
        Entry(ids=tuple(row["ids"]), num_params=row["num_params"], config=row["config"]) for row in rows
    )


@cache
def _by_id() -> dict[str, Entry]:
    return {hub_id.lower(): entry for entry in entries() for hub_id in entry.ids}


def names() -> list[str]:
    """Every known hub id, sorted."""
    return sorted(hub_id for entry in entries() for hub_id in entry.ids)


def config(hub_id: str) -> dict[str, Any] | None:
    """The configuration of the model with that hub id, in either case; None for one that is not known."""
    found = _by_id().get(hub_id.lower())
    return None if found is None else dict(found.config)


def nearest_names(hub_id: str, count: int = 3) -> list[str]:
    """The known hub ids that look most like this one; none where nothing is near."""
    known = {name.lower(): name for name in names()}
    near = difflib.get_close_matches(hub_id.lower(), known, n=count, cutoff=0.6)
    return [known[name] for name in near]

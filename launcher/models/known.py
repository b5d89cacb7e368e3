"""The architectures of models that shipped recipes name, for machines that cannot reach their config.json.

Facts only, in the words of Transformers' configurations: type, depth, widths, heads. No torch.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("known.json")


@cache
def _known() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


def names() -> list[str]:
    """Every known hub id."""
    return sorted(_known())


def facts(hub_id: str) -> dict[str, Any] | None:
    """`model_type` and sizes of the model with that hub id; None for one that is not known."""
    found = _known().get(hub_id)
    return None if found is None else dict(found)

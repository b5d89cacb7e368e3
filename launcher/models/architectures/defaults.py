"""What each family's configuration class says where a saved config.json says nothing.

`defaults.json` holds the values of transformers 5.24's configuration classes, only the facts that a shape
needs; a test compares every one of them with the installed classes. Those of remote code are as published.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "defaults.json"


@cache
def _defaults() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


def defaults(model_type: str) -> dict[str, Any]:
    """The facts that a config.json of this type may leave out."""
    return _defaults()[model_type]

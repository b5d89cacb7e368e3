"""Where prepared tokens are kept."""

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "LAUNCHER_CACHE"


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """LAUNCHER_CACHE, or `finetune-launcher` below XDG_CACHE_HOME, or below ~/.cache."""
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).expanduser()
    home = environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "finetune-launcher"

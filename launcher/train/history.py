"""`history.jsonl`: when a run was started, continued, ended. One line each, never taken back.

metrics.jsonl holds every step once, as if nothing had happened; what did happen is here.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.train.metrics_log import FILE as METRICS
from launcher.train.metrics_log import LineFile, as_json, say

FILE = "history.jsonl"


def note(folder: Path, event: str, step: int, **facts: Any) -> None:
    """Append an event, with the time (seconds since 1970) and the step that it came after."""
    line = as_json({"event": event, "step": step, "time": round(time.time(), 3), **facts})
    try:
        file = LineFile(folder / FILE)
        file.write(line)
        file.close()
    except OSError as error:  # the run, or the failure that is being noted, is worth more
        say(f"{folder / FILE} cannot be written ({error.strerror})")


def earlier_seconds(folder: Path) -> float:
    """What the earlier parts of a run took, as last logged: steps that were lost again cost as much."""
    return max((float(line.get("elapsed_s", 0.0)) for line in _lines(folder / METRICS)), default=0.0)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:  # cut short by a kill
                continue
            if isinstance(line, dict):
                yield line

"""Which start of a starter a run folder belongs to: the same through all of its restarts, another one after.

A restarted rank may continue what its own run began; it may not take a folder that it was refused.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

RUN_VARIABLE = "LAUNCHER_RUN_ID"  # set by `launcher run`, once for a run and its restarts
FILE, KEY = "environment.json", "run_id"


def run_id(environ: Mapping[str, str]) -> str:
    """The name that `launcher run` gave; else the process that started this rank, with its start time."""
    return environ.get(RUN_VARIABLE) or f"{os.getppid()}:{_start_ticks(os.getppid())}"


def _start_ticks(pid: int) -> str:
    """The 22nd field of /proc/PID/stat (proc(5)): a pid is given to others later, with another time."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "?"


def is_taken_by(folder: Path, name: str) -> bool:
    """Whether the run of that name has begun to write into the folder."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get(KEY) == name

"""Run folders as runs leave them, written here: any length, any standing, any names."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launcher.report.page import page
from launcher.report.reading import read_run


def step_line(step: int, **changes: Any) -> dict[str, Any]:
    """A logged step."""
    line = {"step": step, "epoch": step / 100, "loss": 2.0 / math.sqrt(step), "learning_rate": 1e-4 / step}
    line |= {"grad_norm": 1.0 + (step % 7) / 7, "samples_per_s": 40.0, "tokens_per_s": 900.0 + step % 5}
    line |= {"memory_bytes": 3 * 2**30, "memory_now_bytes": 2 * 2**30, "skipped_steps": 0}
    return line | {"elapsed_s": float(step)} | changes


def write_lines(path: Path, lines: Sequence[dict[str, Any]], *, end: str = "") -> None:
    """Lines of JSON, and perhaps the beginning of one more."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end, encoding="utf-8")


def write_run(folder: Path, steps: Sequence[dict[str, Any]], **files: Any) -> Path:
    """A run folder with a log; `summary`, `plan`, `environment` are JSON, `recipe` is text."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "metrics.jsonl", steps)
    for name in ("summary", "plan", "environment"):
        if name in files:
            (folder / f"{name}.json").write_text(json.dumps(files[name]), encoding="utf-8")
    if "recipe" in files:
        (folder / "recipe.yaml").write_text(files["recipe"], encoding="utf-8")
    return folder


def page_of(*folders: Path) -> str:
    """The report's text."""
    return page([read_run(folder, folder.name) for folder in folders])

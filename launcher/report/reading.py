"""A run folder as it is: finished, running, crashed in the middle of a line, or written long ago."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from launcher.redact import redact, redacted_data
from launcher.report.figures import number

METRICS, CONFUSIONS, HISTORY = "metrics.jsonl", "confusions.jsonl", "history.jsonl"
SUMMARY, PLAN, RECIPE, ENVIRONMENT = "summary.json", "plan.json", "recipe.yaml", "environment.json"
COMMAND = "command.txt"
Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run folder holds; empty where a file is missing. Texts are redacted.

    `steps` and `evaluations` are lines of metrics.jsonl. `remarks` say what could not be read.
    `silent_s`: seconds since the last line was written.
    """

    label: str
    folder: Path
    steps: tuple[Line, ...] = ()
    evaluations: tuple[Line, ...] = ()
    confusions: tuple[Line, ...] = ()
    history: tuple[Line, ...] = ()
    summary: Line = field(default_factory=dict)
    plan: Line = field(default_factory=dict)
    recipe: Line = field(default_factory=dict)
    environment: Line = field(default_factory=dict)
    command: str = ""
    checkpoints: tuple[str, ...] = ()
    silent_s: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def last_step(self) -> int:
        """The last step that was logged or summed up."""
        logged = [line["step"] for line in (*self.steps[-1:], *self.evaluations[-1:])]
        return int(max([*logged, number(self.summary.get("steps")) or 0]))

    @property
    def total_steps(self) -> int | None:
        """How many the run was to have, where it said so."""
        found = [number(line.get("total_steps")) for line in self.history]
        return next((int(each) for each in reversed(found) if each), None)


class _Reader:
    """Reads the files of one folder and collects what was wrong with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remarks: list[str] = []

    def text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            self.remarks.append(f"{name} cannot be read ({error.strerror})")
            return ""

    def data(self, name: str) -> Line:
        """A file that holds one mapping, as JSON or YAML."""
        text = self.text(name)
        if not text.strip():
            return {}
        try:
            read = json.loads(text) if name.endswith(".json") else YAML(typ="safe", pure=True).load(text)
        except (ValueError, YAMLError, RecursionError):
            self.remarks.append(f"{name} cannot be read: it is left out")
            return {}
        cleaned = redacted_data(read)
        return cleaned if isinstance(cleaned, dict) else {}

    def lines(self, name: str) -> Iterator[Line]:
        """The mappings with a step; a last line that is being written is no fault, others are counted."""
        faults, texts = 0, self.text(name).split("\n")
        for place, text in enumerate(texts):
            try:
                line = json.loads(text) if text.strip() else None
            except (ValueError, RecursionError):
                line, faults = None, faults + (place < len(texts) - 1)
            if isinstance(line, dict) and number(line.get("step")) is not None:
                yield line
        if faults:
            self.remarks.append(f"{name}: {faults} line(s) cannot be read and are left out")


def read_run(folder: Path, label: str) -> Run:
    """Read everything that is there. No file is needed, none is trusted."""
    reader = _Reader(folder)
    lines = sorted(reader.lines(METRICS), key=lambda line: float(line["step"]))
    return Run(
        label=label,
        folder=folder,
        steps=tuple(line for line in lines if "loss" in line),
        evaluations=tuple(line for line in lines if any(key.startswith("eval_") for key in line)),
        confusions=tuple(reader.lines(CONFUSIONS)),
        history=tuple(redacted_data(line) for line in reader.lines(HISTORY)),
        summary=reader.data(SUMMARY),
        plan=reader.data(PLAN),
        recipe=reader.data(RECIPE),
        environment=reader.data(ENVIRONMENT),
        command=redact(reader.text(COMMAND).strip()),
        checkpoints=tuple(sorted((path.name for path in folder.glob("checkpoint-*")), key=_number_in)),
        silent_s=_silent(folder / METRICS),
        remarks=tuple(reader.remarks),
    )


def _number_in(name: str) -> tuple[int, str]:
    digits = name.rpartition("-")[2]
    return (int(digits), name) if digits.isdecimal() else (0, name)


def _silent(path: Path) -> float | None:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None

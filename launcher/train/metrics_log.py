"""`metrics.jsonl`, TensorBoard and the progress line: what a person and a program read of a run."""

import json
import math
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from launcher.plan.write import write_file

FILE = "metrics.jsonl"


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def keep_until(path: Path, step: int) -> None:
    """Drop the lines after `step`, so that a resumed run writes each step once."""
    if not path.exists():
        return
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if _step_of(line) <= step]
    write_file(path, "".join(f"{line}\n" for line in lines))


def _step_of(line: str) -> float:
    """A line's step; a line cut short by a kill counts as later than any."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


class MetricsLog:
    """The first rank's log; the other ranks' calls do nothing."""

    def __init__(self, folder: Path, *, is_first: bool, total_steps: int, start: int, board: bool) -> None:
        """Continue after `start` steps; `board` also writes TensorBoard events."""
        self.is_first = is_first
        if not is_first:
            return
        keep_until(folder / FILE, start)
        self.file = (folder / FILE).open("a", encoding="utf-8")
        self.board = _open_board(folder, start) if board else None
        self.bar = tqdm(
            total=total_steps,
            initial=start,
            unit="step",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
            leave=False,
        )

    @classmethod
    def silent(cls) -> "MetricsLog":
        """A log that drops everything: the other ranks', and the one before the run's own is open."""
        return cls(Path(), is_first=False, total_steps=0, start=0, board=False)

    def write(self, line: dict[str, Any]) -> None:
        """Append one object, flushed, and send its numbers to TensorBoard."""
        if not self.is_first:
            return
        self.file.write(json.dumps({key: _plain(value) for key, value in line.items()}) + "\n")
        self.file.flush()
        if self.board is not None:
            for key, value in line.items():
                if key != "step" and isinstance(value, int | float):
                    group = "eval" if key.startswith("eval_") else "train"
                    self.board.add_scalar(f"{group}/{key.removeprefix('eval_')}", value, line["step"])

    def advance(self, step: int, note: str = "") -> None:
        """Move the bar."""
        if self.is_first:
            self.bar.update(step - self.bar.n)
            if note:
                self.bar.set_postfix_str(note, refresh=False)

    def close(self) -> None:
        """End the bar, the file and the board."""
        if self.is_first:
            self.bar.close()
            self.file.close()
            if self.board is not None:
                self.board.close()


def _open_board(folder: Path, start: int) -> Any:
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError:
        tqdm.write(
            "tensorboard is not installed: metrics.jsonl only (pip install tensorboard)", file=sys.stderr
        )
        return None
    return SummaryWriter(str(folder), purge_step=start + 1 if start else None)

"""Where metrics go besides the file: each outlet may fail, which is said once and ends no run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

Say = Callable[[str], None]


class Outlet(Protocol):
    """Somebody who is told numbers."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Take numbers by `train/...` or `eval/...` name."""

    def close(self) -> None:
        """Hand on what is left."""


def named(line: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a line of metrics.jsonl, grouped as trackers show them."""
    found = {}
    for key, value in line.items():
        if key != "step" and isinstance(value, int | float) and not isinstance(value, bool):
            group = "eval" if key.startswith("eval_") else "train"
            found[f"{group}/{key.removeprefix('eval_')}"] = value
    return found


class Guarded:
    """An outlet that is left out after its first failure, with one line for the person."""

    def __init__(self, name: str, outlet: Outlet, say: Say) -> None:
        """`name` is the word in the line."""
        self.name = name
        self.say = say
        self.outlet: Outlet | None = outlet

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Hand on, while it works."""
        self._try(lambda outlet: outlet.log(values, step))

    def close(self) -> None:
        """Close, where it still works."""
        self._try(lambda outlet: outlet.close())
        self.outlet = None

    def _try(self, act: Callable[[Outlet], None]) -> None:
        if self.outlet is None:
            return
        try:
            act(self.outlet)
        except Exception as error:  # whatever a tracker raises: the run is worth more
            self.outlet = None
            self.say(f"{self.name} failed and is left out from here on: {in_one_line(error)}")


def in_one_line(error: BaseException) -> str:
    """The kind and the first line of an error."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def event_folder(folder: Path) -> Path:
    """Where TensorBoard's event files of the run in `folder` lie: what a panel is pointed at."""
    return folder


class Board:
    """TensorBoard's event files, written directly: Accelerate's tracker would add a folder a start."""

    def __init__(self, folder: Path, start: int) -> None:
        """Continue after `start` steps. Raises ImportError where tensorboard is not installed."""
        from torch.utils.tensorboard.writer import SummaryWriter

        self.writer = SummaryWriter(str(event_folder(folder)), purge_step=start + 1 if start else None)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """One scalar a number."""
        for key, value in values.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flush and close the file."""
        self.writer.close()


def open_board(folder: Path, start: int, say: Say) -> Guarded | None:
    """The board, or None with a line where it cannot be opened."""
    try:
        return Guarded("TensorBoard", Board(folder, start), say)
    except ImportError:
        say("tensorboard is not installed: metrics.jsonl only (pip install tensorboard)")
    except OSError as error:
        say(f"TensorBoard's file cannot be opened: {in_one_line(error)}; metrics.jsonl only")
    return None

"""`metrics.jsonl`, the trackers and what a person sees: everything that is told about a run's steps."""

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from launcher.plan.write import write_file
from launcher.train.display import Display, choose_mode
from launcher.train.outlet import Outlet, named, open_board

FILE = "metrics.jsonl"
CONFUSIONS = "confusions.jsonl"


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(line: Mapping[str, Any]) -> str:
    """One line of a log, its end included."""
    return json.dumps({key: _plain(value) for key, value in line.items()}, ensure_ascii=False) + "\n"


def keep_until(path: Path, step: int) -> None:
    """Drop the lines after `step`, so that a resumed run writes each step once."""
    if not path.exists():
        return
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if _step_of(line) <= step]
    write_file(path, "".join(f"{line}\n" for line in kept))


def _step_of(line: str) -> float:
    """A line's step; a line cut short by a kill counts as later than any."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


class LineFile:
    """A file that is appended to line by line. A full disk loses lines, is said once, and ends no run."""

    def __init__(self, path: Path) -> None:
        """Open for appending; raises OSError where even that cannot be done."""
        self.path = path
        self.file: TextIO = path.open("a", encoding="utf-8")
        self.failed = False

    def write(self, text: str) -> None:
        """Append whole lines, flushed."""
        try:
            # What a failed write left of a line is ended first, so that only that line is lost.
            self.file.write(f"\n{text}" if self.failed else text)
            self.file.flush()
            self.failed = False
        except OSError as error:
            if not self.failed:
                say(
                    f"{self.path} cannot be written ({error.strerror}): the run goes on, lines are lost there"
                )
            self.failed = True
            self._begin_again()

    def _begin_again(self) -> None:
        """Without the buffer that could not be written: it would come again with every flush."""
        with suppress(OSError):  # the same failure, said already
            self.file.close()
        self.file = self.path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def say(text: str) -> None:
    """A line for the person, beside a bar if there is one."""
    tqdm.write(text, file=sys.stderr)


Gauge = Callable[[Mapping[str, Any]], dict[str, Any]]


class MetricsLog:
    """The first rank's log; the other ranks' calls do nothing.

    `opened` is this part's beginning by `time.perf_counter`; rows and tokens at that moment are what the
    rates of its first step leave out. `gauge` adds to a logged step what follows from it.
    """

    rows_at_start = tokens_at_start = 0

    def __init__(
        self,
        folder: Path,
        *,
        is_first: bool,
        total_steps: int,
        start: int,
        board: bool,
        progress: str = "auto",
        outlets: Sequence[Outlet] = (),
    ) -> None:
        """Continue after `start` steps; `board` also writes TensorBoard events, `outlets` are told too."""
        self.is_first = is_first
        self.opened = time.perf_counter()
        self.gauge: Gauge = lambda line: {}
        self.on_close: Callable[[BaseException | None], None] = lambda error: None
        if not is_first:
            return
        self.folder = folder
        keep_until(folder / FILE, start)
        keep_until(folder / CONFUSIONS, start)
        self.file = LineFile(folder / FILE)
        opened = open_board(folder, start, say) if board else None
        self.outlets = [*([opened] if opened else ()), *outlets]
        mode = choose_mode(progress, is_terminal=sys.stderr.isatty())
        self.display = Display(mode, total_steps=total_steps, start=start)

    @classmethod
    def silent(cls) -> "MetricsLog":
        """A log that drops everything: the other ranks', and the one before the run's own is open."""
        return cls(Path(), is_first=False, total_steps=0, start=0, board=False)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one object, flushed, and tell its numbers to the trackers."""
        if not self.is_first:
            return
        self.file.write(as_json(line))
        numbers = named(line)
        for outlet in self.outlets:
            outlet.log(numbers, line["step"])

    def keep_confusions(self, line: Mapping[str, Any]) -> None:
        """Append one evaluation's classes to their own file: step, labels, [true, predicted, rows]."""
        if self.is_first:
            file = LineFile(self.folder / CONFUSIONS)
            file.write(as_json(line))
            file.close()

    def tell(self, line: Mapping[str, Any]) -> None:
        """Show a logged step to the person."""
        if self.is_first:
            self.display.tell(line)

    def advance(self, step: int) -> None:
        """Move the bar."""
        if self.is_first:
            self.display.advance(step)

    def close(self) -> None:
        """End the bar, the file and the trackers; closed while an error goes up, the history has its name."""
        if self.is_first:
            self.display.close()
            self.file.close()
            self.on_close(sys.exc_info()[1])
            for outlet in self.outlets:
                outlet.close()

"""What a person at the terminal sees of a run's steps: a bar, lines, or nothing."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from launcher.units import GIB, format_seconds

PLAIN_COLUMNS = 100


def choose_mode(asked: str, *, is_terminal: bool) -> str:
    """`bar`, `lines` or `quiet`: auto draws a bar on a terminal, and writes lines into a file or a pipe."""
    if asked != "auto":
        return asked
    return "bar" if is_terminal else "lines"


class Display:
    """Writes to standard error. Only the bar ever uses a carriage return."""

    def __init__(self, mode: str, *, total_steps: int, start: int) -> None:
        """`mode`: bar, lines or quiet."""
        self.mode = mode
        self.total_steps = total_steps
        self.bar = _bar(total_steps, start) if mode == "bar" else None

    def advance(self, step: int) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(step - self.bar.n)

    def tell(self, line: Mapping[str, Any]) -> None:
        """Show a logged step."""
        if self.bar is not None:
            self.bar.set_postfix_str("  ".join(short_words(line)), refresh=False)
        elif self.mode == "lines":
            print("  ".join(step_words(line, self.total_steps)), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.close()


def _bar(total: int, start: int) -> Any:
    # A terminal that does not know its own width (0 columns: one made for a child) would get no bar at all.
    size = _columns()
    width = {"dynamic_ncols": True} if size else {"ncols": PLAIN_COLUMNS}
    return tqdm(total=total, initial=start, unit="step", leave=False, file=sys.stderr, **width)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 0


def step_words(line: Mapping[str, Any], total_steps: int) -> list[str]:
    """A logged step as the parts of one line: what is not known is left out."""
    return [
        f"step {line['step']}/{total_steps}",
        f"epoch {line['epoch']:.2f}",
        f"loss {line['loss']:.4f}",
        f"rate {line['learning_rate']:.2e}",
        f"norm {line['grad_norm']:.3f}",
        f"{line['tokens_per_s']:,.0f} tokens/s",
        f"{line['samples_per_s']:,.3g} rows/s" if line["samples_per_s"] < 100 else _rows(line),
        *_mfu(line),
        *_memory(line),
        *_left(line),
        *cost_words(line),
    ]


def short_words(line: Mapping[str, Any]) -> list[str]:
    """What stands behind a bar, which shows steps and time left itself."""
    loss = [f"loss {line['loss']:.4f}"]
    return [*loss, f"{line['tokens_per_s']:,.0f} tok/s", *_mfu(line), *_memory(line), *cost_words(line)]


def _rows(line: Mapping[str, Any]) -> str:
    return f"{line['samples_per_s']:,.0f} rows/s"


def _mfu(line: Mapping[str, Any]) -> list[str]:
    return [f"MFU {line['mfu']:.0%}"] if "mfu" in line else []


def _memory(line: Mapping[str, Any]) -> list[str]:
    now, peak = line.get("memory_now_bytes"), line.get("memory_bytes")
    if not now or not peak:
        return []
    return [f"memory {now / GIB:.2f} (peak {peak / GIB:.2f}) GiB"]


def _left(line: Mapping[str, Any]) -> list[str]:
    return [f"left {format_seconds(line['eta_s'])}"] if "eta_s" in line else []


def cost_words(line: Mapping[str, Any]) -> list[str]:
    """What the run has cost so far: one figure, or from low to high."""
    if "cost_low" not in line:
        return []
    low, high = f"{line['cost_low']:.2f}", f"{line['cost_high']:.2f}"
    return [f"cost {low if low == high else f'{low}-{high}'} {line['currency']}"]

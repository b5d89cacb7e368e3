"""Two ways measured side by side, in alternating order, and their ratio with a bound.

Machines drift: a neighbour wakes up, a clock drops. So the two are measured in turn (A B, B A, A B ...)
and compared pair by pair. The figure is the geometric mean of the pairs' ratios; its bounds are one-sided
95 % bounds from Student's t on the logarithms of the ratios, so "lower bound at least 0.97" is a claim
with 5 % error. Results are kept with hardware, versions and date.
"""

import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from launcher.hardware import limits

RESULTS = Path(__file__).with_name("results")
_VERSIONS = ("torch", "transformers", "accelerate", "deepspeed", "peft", "numpy", "pydantic")


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """First over second: geometric mean, its one-sided 95 % bounds, and the median of the pairs."""

    mean: float
    lower_95: float
    upper_95: float
    median: float
    num_pairs: int

    def __str__(self) -> str:
        """As printed: mean, bounds, number of pairs."""
        bounds = f"95 % bounds {self.lower_95:.3f} .. {self.upper_95:.3f}"
        return f"{self.mean:.3f} ({bounds}, {self.num_pairs} pairs)"


def alternate(
    first: Callable[[], float], second: Callable[[], float], *, num_pairs: int, num_warmups: int = 1
) -> list[tuple[float, float]]:
    """Measure both so many times, the order turned round in every other pair; warm-ups are not counted."""
    for _ in range(num_warmups):
        first()
        second()
    pairs = []
    for index in range(num_pairs):
        if index % 2:
            theirs, ours = second(), first()
        else:
            ours, theirs = first(), second()
        pairs.append((ours, theirs))
    return pairs


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The ratio of the first of each pair to the second. Needs two pairs or more."""
    logs = [math.log(first / second) for first, second in pairs]
    middle = statistics.fmean(logs)
    margin = stats.t.ppf(0.95, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(
        mean=math.exp(middle),
        lower_95=math.exp(middle - margin),
        upper_95=math.exp(middle + margin),
        median=math.exp(statistics.median(logs)),
        num_pairs=len(logs),
    )


def machine() -> dict[str, Any]:
    """What the figures were measured on, and how busy it was: the load includes the benchmark's own."""
    gpu = _gpu()
    return {
        "cpu": _cpu(),
        "cores": limits.cores().amount,
        "host_memory_gib": round(limits.host_memory_bytes().amount / 2**30, 1),
        "load_average_5_min": round(os.getloadavg()[1], 1),
        "gpu": gpu,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _VERSIONS},
    }


def save(benchmark: str, figures: Mapping[str, Any]) -> Path:
    """Write the figures beside their hardware and date; one file a benchmark and a kind of machine."""
    found = machine()
    path = _path(benchmark, found)
    path.parent.mkdir(exist_ok=True)
    row = {"benchmark": benchmark, "date": datetime.date.today().isoformat(), "machine": found}
    path.write_text(
        json.dumps(row | {"figures": dict(figures)}, indent=1, default=_plain) + "\n", encoding="utf-8"
    )
    return path


def saved(benchmark: str) -> dict[str, Any]:
    """The figures that are kept for this kind of machine; none where it has not been measured here."""
    path = _path(benchmark, machine())
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else {}
    return found


def _path(benchmark: str, found: Mapping[str, Any]) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", (found["gpu"] or f"cpu {found['cores']} cores").lower()).strip("-")
    return RESULTS / f"{benchmark}-{name}.json"


def _plain(value: Any) -> Any:
    return asdict(value)


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.is_file() else ""
    match = re.search(r"model name\s*: (.*)", text)
    return match.group(1) if match else platform.processor() or os.uname().machine


def _gpu() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"

"""What a logged step says beside its numbers: model FLOPs utilisation, time left, time and money spent.

Host counters only: nothing here waits for the device.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.backends.options import BACKENDS
from launcher.errors import LauncherError
from launcher.facts import Machine
from launcher.hardware.catalog import Gpu, find
from launcher.plan.known_shape import known_shape
from launcher.plan.model_flops import flops_per_token, mean_row_length
from launcher.plan.prices import Price, price_of
from launcher.train.job import Job

_STAT = Path("/proc/self/stat")


@dataclass(frozen=True, kw_only=True)
class SpeedFacts:
    """What is known of model and cards; None where it is not.

    `peak_flops`: the data sheet's dense 16-bit operations a second of all cards together, whatever
    precision the run computes in. `price` is one card's hour.
    """

    flops_per_token: float | None = None
    peak_flops: float | None = None
    price: Price | None = None
    num_cards: int = 1

    def mfu(self, tokens_per_s: float) -> float | None:
        """The share of the cards' peak that the model's own operations use (PaLM, appendix B)."""
        if not self.flops_per_token or not self.peak_flops:
            return None
        return tokens_per_s * self.flops_per_token / self.peak_flops

    def cost(self, seconds: float) -> tuple[float, float] | None:
        """Low and high price of so long a time on all cards."""
        if self.price is None:
            return None
        hours = seconds / 3600 * self.num_cards
        return hours * self.price.low, hours * self.price.high


def speed_facts(job: Job, machine: Machine) -> tuple[SpeedFacts, str]:
    """What can be known of this run, and why there is no price where a price list is broken."""
    takes_all = BACKENDS.get(job.plan.backend).takes_all_cards
    num_cards = max(1, machine.num_gpus) if takes_all else job.plan.step.num_ranks
    gpu = find(machine.gpu_name, machine.gpu_memory_bytes) if machine.device == "cuda" else None
    price, why_not = _price(gpu) if gpu else (None, "")
    facts = SpeedFacts(
        flops_per_token=_flops(job),
        peak_flops=gpu.fp16_tflops * 1e12 * num_cards if gpu else None,
        price=price,
        num_cards=num_cards,
    )
    return facts, why_not


def _price(gpu: Gpu) -> tuple[Price | None, str]:
    try:
        return price_of(gpu), ""
    except LauncherError as error:  # no reason to end a run that is about to start
        return None, f"no cost is shown: {error.problems[0].what}"


def _flops(job: Job) -> float | None:
    shape = known_shape(job.recipe)
    if shape is None:
        return None
    is_adapter = job.recipe.adapter.method != "full"
    length = mean_row_length(job.store.lengths)
    return flops_per_token(shape, trained=job.num_trained, is_adapter=is_adapter, row_length=length)


class Gauge:
    """The clock of a run, continued from its earlier parts."""

    def __init__(self, facts: SpeedFacts, *, total_steps: int, start: int, earlier_s: float = 0.0) -> None:
        """`start` steps are done; `earlier_s` is what earlier parts of the run took, lost steps included."""
        self.facts = facts
        self.total_steps = total_steps
        self.opened = time.monotonic()
        self.before_s = earlier_s + seconds_of_process()
        self.first: tuple[int, float] | None = None

    def elapsed_s(self) -> float:
        """Seconds that the run has had a machine for, start-up included."""
        return self.before_s + time.monotonic() - self.opened

    def __call__(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """More fields of a logged step; what is not known is left out. Seconds; cost in `currency`."""
        elapsed, eta, mfu = self.elapsed_s(), self._eta_s(line["step"]), self.facts.mfu(line["tokens_per_s"])
        found: dict[str, Any] = {"elapsed_s": round(elapsed, 2)}
        if eta is not None:
            found["eta_s"] = round(eta, 1)
        if mfu is not None:
            found["mfu"] = round(mfu, 5)
        cost = self.facts.cost(elapsed)
        if cost is not None and self.facts.price is not None:
            low, high = (round(each, 4) for each in cost)
            found |= {"cost_low": low, "cost_high": high, "currency": self.facts.price.currency}
        return found

    def _eta_s(self, step: int) -> float | None:
        """Seconds left at the mean pace since the first logged step, evaluation and saving included."""
        now = time.monotonic()
        if self.first is None:
            self.first = (step, now)
            return None
        first, then = self.first
        left = self.total_steps - step
        return left * (now - then) / (step - first) if left and step > first else None


def seconds_of_process() -> float:
    """How long this process has run (proc(5): field 22, in ticks since boot); 0 where no one says."""
    if not _STAT.is_file():
        return 0.0
    started = int(_STAT.read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)

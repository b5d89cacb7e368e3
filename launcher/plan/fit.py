"""Judges candidates against a card, and picks: the fastest that fits, and the nearest to what was asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from launcher.hardware.catalog import Gpu
from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.fits import Verdict, fits
from launcher.plan.candidates import Candidate
from launcher.plan.levers import MICRO
from launcher.plan.time_model import StepTime, step_time, step_words
from launcher.units import format_bytes


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A candidate with its memory, the verdict on it, and its time on a known card."""

    candidate: Candidate
    breakdown: Breakdown
    verdict: Verdict
    time: StepTime | None

    @property
    def needed_bytes(self) -> int:
        """Allocated, with the driver's context and the margin."""
        return self.verdict.needed_bytes

    @property
    def over_bytes(self) -> int:
        """How much is lacking; negative: to spare."""
        return self.verdict.needed_bytes - self.verdict.usable_bytes

    @property
    def fits(self) -> bool:
        """Whether everything is there, margin included."""
        return self.verdict.fits

    @property
    def seconds(self) -> float:
        """Of an optimizer step; where the time is unknown, larger micro batches count as faster."""
        return self.time.seconds if self.time else 1.0 / self.candidate.setting.micro_batch


def judge(candidate: Candidate, gpu: Gpu | None, usable_bytes: int) -> Judged:
    """Predict one candidate's memory and time."""
    breakdown = estimate(candidate.setting)
    return Judged(
        candidate=candidate,
        breakdown=breakdown,
        time=step_time(candidate.setting, gpu) if gpu else None,
        verdict=fits(breakdown, usable_bytes),
    )


def asked(judged: Sequence[Judged]) -> Judged:
    """What the recipe asks for: the fastest that fits among what it leaves open, else the least over."""
    own = [each for each in judged if each.candidate.distance == 0]
    fitting = [each for each in own if each.fits]
    if fitting:
        return min(fitting, key=_speed)
    return min(own, key=lambda each: each.over_bytes)


def nearest(judged: Sequence[Judged]) -> Judged | None:
    """The one that fits with the fewest and mildest changes, the fastest of several; None where none does."""
    fitting = [each for each in judged if each.fits]
    return min(fitting, key=lambda each: (each.candidate.distance, *_speed(each)), default=None)


def fastest(judged: Sequence[Judged]) -> Judged | None:
    """The fastest that fits."""
    return min((each for each in judged if each.fits), key=_speed, default=None)


def _speed(judged: Judged) -> tuple[float, int]:
    """Faster first; among equals the one that needs less."""
    return judged.seconds, judged.needed_bytes


def one_a_turn(judged: Sequence[Judged]) -> list[Judged]:
    """For every combination of levers its best micro batch: the fastest that fits, else the least over."""
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        key = repr(sorted((k, v) for k, v in each.candidate.changes.items() if k != MICRO))
        groups.setdefault(key, []).append(each)
    best = [fastest(group) or min(group, key=lambda each: each.over_bytes) for group in groups.values()]
    return sorted(best, key=_speed)


def faster_that_do_not_fit(judged: Sequence[Judged], chosen: Judged, count: int = 6) -> list[Judged]:
    """What would be faster than the chosen one, and why not: nearest to what was asked first."""
    beaten = [each for each in one_a_turn(judged) if not each.fits and each.seconds < chosen.seconds]
    beaten += [each for each in judged if _is_larger_cut(each, chosen)][:1]
    unique = {id(each): each for each in beaten}
    return sorted(unique.values(), key=lambda each: (each.candidate.distance, each.seconds))[:count]


def _is_larger_cut(each: Judged, chosen: Judged) -> bool:
    """The same plan with more rows at once, which does not fit."""
    own = {k: v for k, v in each.candidate.changes.items() if k != MICRO}
    other = {k: v for k, v in chosen.candidate.changes.items() if k != MICRO}
    larger = each.candidate.setting.micro_batch > chosen.candidate.setting.micro_batch
    return own == other and larger and not each.fits and each.seconds < chosen.seconds


def why_not(judged: Judged) -> str:
    """One line: how much is lacking, in which phase, and the largest part of it."""
    name = judged.verdict.phase
    terms = next(phase.terms for phase in judged.breakdown.phases if phase.name == name)
    largest = max(terms, key=lambda term: term.num_bytes)
    over = format_bytes(judged.over_bytes)
    return f"{over} over in {name}: {largest.name} {format_bytes(largest.num_bytes)}"


def summary(judged: Judged) -> str:
    """Micro batch, memory and time in a few words."""
    setting = judged.candidate.setting
    speed = f", {step_words(judged.time.seconds)} a step" if judged.time else ""
    cut = f"{setting.micro_batch} rows x {setting.accumulation_steps}"
    return f"{cut}, {format_bytes(judged.breakdown.peak_bytes)} allocated{speed}"

"""What an estimate or a trace says: named terms, phases whose maximum is the peak, and how sure it is."""

from dataclasses import dataclass
from typing import Literal

PHASES = ("load", "forward", "backward", "optimizer", "evaluate", "save")


@dataclass(frozen=True, kw_only=True)
class Term:
    """One thing that takes memory, in bytes, with the formula that gave it."""

    name: str
    num_bytes: int
    formula: str


Terms = list[Term]


def term(name: str, num_bytes: float, formula: str) -> Terms:
    """One line; none where there is less than a byte."""
    return [Term(name=name, num_bytes=int(num_bytes), formula=formula)] if num_bytes >= 1 else []


def total(terms: Terms) -> int:
    """Bytes of all lines."""
    return sum(each.num_bytes for each in terms)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """What is alive at the worst moment of one phase of a run."""

    name: str
    terms: tuple[Term, ...]

    @property
    def num_bytes(self) -> int:
        """Bytes allocated at the phase's worst moment."""
        return sum(term.num_bytes for term in self.terms)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far a figure is to be trusted: measured against `num_measurements`, or derived only."""

    kind: Literal["validated", "derived"]
    num_measurements: int = 0
    p90_error: float = 0.0
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """Memory of one rank. `reserved_bytes` and `process_bytes` (nvidia-smi's figure) are low and high.

    `context_bytes`: the driver's and communicators', outside of torch; `overlap_bytes`: freed memory that
    overlapping streams cannot use again yet.
    """

    phases: tuple[Phase, ...]
    reserved_bytes: tuple[int, int]
    process_bytes: tuple[int, int]
    standing: Standing
    method: Literal["estimate", "trace", "measured"] = "estimate"
    context_bytes: int = 0
    overlap_bytes: int = 0

    @property
    def peak(self) -> Phase:
        """The phase that needs most: a peak is a maximum over phases, never their sum."""
        return max(self.phases, key=lambda phase: phase.num_bytes)

    @property
    def peak_bytes(self) -> int:
        """What `torch.cuda.max_memory_allocated` would say."""
        return self.peak.num_bytes

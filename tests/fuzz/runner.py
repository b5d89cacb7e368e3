"""Runs one target on so many inputs, counts them, and keeps what broke a promise."""

import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.guard import kept
from tests.fuzz.targets import Input, Target


@dataclass
class Counts:
    """What became of a target's inputs; `faults`: the place of a fault to the first input that showed it."""

    inputs: int = 0
    passed: int = 0
    refused: int = 0
    parsing_mutations: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    by_place: Counter[str] = field(default_factory=Counter)


def run(target: Target, inputs: int, number: int) -> Counts:
    """So many inputs made from the seed `number`. Goes on after a fault: each place is told once."""
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:

        @seed(number)
        @settings(
            max_examples=inputs,
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(target.inputs())
        def one(made: Input) -> None:
            _one(target, made, Path(place), counts)

        one()
    return counts


def _one(target: Target, made: Input, folder: Path, counts: Counts) -> None:
    counts.inputs += 1
    counts.parsing_mutations += made.is_mutation and target.parses(made)
    try:
        said = kept(lambda: target.call(made, folder), folder)
    except Exception as error:  # noqa: BLE001 (that is what is looked for)
        _note(error, made, counts)
        return
    counts.passed += said == "passed"
    counts.refused += said == "refused"


def _note(error: Exception, made: Input, counts: Counts) -> None:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/launcher/" in frame.filename]
    last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} ({last.name})"
    counts.by_place[where] += 1
    shown = f"{made.options or ''} {(made.words or made.data)!r}"[:1500]
    counts.faults.setdefault(where, f"{where}: {str(error)[:300]}\n    {made.name} {shown}")

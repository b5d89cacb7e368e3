"""The end of a run whose numbers are not finite: look where they break, keep the evidence, make the error."""

import math
from collections.abc import Collection
from typing import Any

from launcher.errors import NonFinite
from launcher.hardware.probe import machine as probe
from launcher.train.checkpoint_files import newest_whole
from launcher.train.job import Job
from launcher.train.numbers import Numbers, Stop
from launcher.train.numbers_advice import Ending, own_weights
from launcher.train.numbers_evidence import evidence, keep, suspects, texts
from launcher.train.numbers_inspect import Findings, bad_parameters, inspect
from launcher.train.state import StepRecord


def end(
    job: Job,
    numbers: Numbers,
    record: StepRecord,
    stop: Stop,
    shares: list[float],
    bad_at_start: Collection[str],
) -> NonFinite:
    """Repeat the step's forward pass, keep the evidence, and make the error. Every rank must call.

    `bad_at_start`: names of weights that were not finite before the first step.
    """
    job.say(f"step {record.step}: {stop.reason}; looking for the module where numbers break")
    mine = _inspected(job, record.step - 1)
    found = job.world.gather(mine)
    bad = {name: name in bad_at_start for name in bad_parameters(job)}
    facts = evidence(job, [*numbers.past], step=record.step, shares=shares)
    path = keep(
        job,
        facts
        | {"stopped": stop.reason, "ranks": [_with_parameters(each, bad) for each in found]}
        | {"weights_not_finite": [*bad], "texts": texts(job, suspects(found, facts["rows"]))},
        step=record.step,
    )
    checkpoint, _ = newest_whole(job.folder)
    return Ending(
        step=record.step,
        stop=stop,
        precision=job.plan.precision,
        machine=probe(job.recipe.hardware.device),
        found=found,
        bad_weights=bad,
        loss_was_finite=math.isfinite(record.step_loss),
        checkpoint=checkpoint.name if checkpoint else None,
        evidence=path,
        learning_rate=job.plan.learning_rate,
    ).error()


def _inspected(job: Job, step: int) -> Findings:
    """The findings; an error while looking must not hide why the run ends."""
    try:
        return inspect(job, step)
    except (RuntimeError, ValueError, TypeError) as error:
        why = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        rank = job.world.rank
        return Findings(
            rank=rank,
            loss_is_finite=False,
            first=None,
            micro_batch=None,
            rows=(),
            bad_rows=(),
            largest=(),
            failed=why,
        )


def _with_parameters(found: Findings, bad: dict[str, bool]) -> dict[str, Any]:
    """A rank's findings, and whether the named module's own parameters are finite."""
    if found.first is None:
        return found.to_dict()
    return found.to_dict() | {"parameters_of_first_are_finite": not own_weights(found.first, bad)}

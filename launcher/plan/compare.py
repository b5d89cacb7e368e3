"""A plan that was written before, against what was really started."""

import json
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, LaunchMismatch, Problem
from launcher.facts import Plan


def read_plan(path: Path) -> dict[str, Any]:
    """A `plan.json`. Raises BadValue where it cannot be read."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        assert {"backend", "step"} <= found.keys() and "num_ranks" in found["step"]
    except (OSError, ValueError, AssertionError, AttributeError, TypeError) as error:
        raise BadValue(
            Problem(
                where=f"--plan {path}",
                what=f"this is no plan that can be read ({type(error).__name__})",
                right="the plan.json of a run folder",
                type="--plan runs/NAME/plan.json, or leave it out",
            )
        ) from error
    return found


def require_same(planned: dict[str, Any], plan: Plan) -> None:
    """Raise LaunchMismatch where other ranks, another backend or another global batch was planned."""
    ranks, found = planned["step"]["num_ranks"], plan.step.num_ranks
    if ranks != found:
        raise _other(f"planned {ranks} processes, found {found}", planned)
    if planned["backend"] != plan.backend:
        raise _other(f"planned backend {planned['backend']}, found {plan.backend}", planned)
    batch = planned["step"].get("global_batch_size")
    if batch != plan.step.global_batch_size:
        raise _other(f"planned a global batch of {batch}, found {plan.step.global_batch_size}", planned)


def _other(what: str, planned: dict[str, Any]) -> LaunchMismatch:
    backend, ranks = planned["backend"], planned["step"]["num_ranks"]
    return LaunchMismatch(
        Problem(
            what=what,
            right=f"{ranks} processes on {backend}, as planned",
            type=f"start with: launcher run {planned.get('recipe_name', 'RECIPE')} "
            f"--backend {backend} --gpus {ranks}   (or leave --plan out)",
        )
    )

"""`summary.json`: what a run did and took, beside what had been predicted for it."""

from collections.abc import Mapping
from typing import Any

from launcher.errors import LauncherError
from launcher.facts import Machine
from launcher.memory.of_recipe import longest
from launcher.plan.known_shape import shape_and_source
from launcher.plan.prediction import Prediction, predict
from launcher.plan.standing import in_words
from launcher.train.job import Job


def summary(
    job: Job,
    machine: Machine,
    *,
    recipe_name: str,
    quality: Mapping[str, float],
    seconds: float,
    measured: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that is kept of a finished run, in plain types. `measured` is the memory of this rank."""
    progress = job.progress
    rate = max(progress.train_seconds, 1e-9)
    predicted, why_not = _prediction(job, machine)
    return {
        "steps": progress.step,
        "skipped_steps": progress.skipped,
        "rows": progress.rows,
        "trained_parameters": job.num_trained,
        "parameters": job.num_parameters,
        "seconds": round(seconds, 2),
        "samples_per_s": round(progress.rows / rate, 2),
        "tokens_per_s": round(progress.tokens / rate, 1),
        "quality": dict(quality),
        "best": {"metric": progress.best_metric, "step": progress.best_step},
        "plan": _plan(job, machine, recipe_name),
        "memory": {"predicted": _memory(predicted, why_not), "measured": dict(measured)},
        "throughput": {
            "samples_per_s": round(progress.rows / rate, 2),
            "tokens_per_s": round(progress.tokens / rate, 1),
            **_speed(predicted),
        },
    }


def _plan(job: Job, machine: Machine, recipe_name: str) -> dict[str, Any]:
    """What tells one kind of run from another when they are compared."""
    plan = job.plan
    return {
        "recipe_name": recipe_name,
        "backend": plan.backend,
        "method": job.recipe.adapter.method,
        "device": plan.device,
        "gpu_name": machine.gpu_name,
        "gpu_memory_bytes": machine.gpu_memory_bytes,
        "num_ranks": plan.step.num_ranks,
        "micro_batch_size": plan.step.micro_batch_size,
        "accumulation_steps": plan.step.accumulation_steps,
        "precision": plan.precision,
        "activation_checkpointing": job.recipe.training.activation_checkpointing,
        "max_length": longest(job.recipe.data),
    }


def _prediction(job: Job, machine: Machine) -> tuple[Prediction | None, str]:
    """The estimate for this very run, or why there is none: a summary is written all the same."""
    try:
        shape, _ = shape_and_source(job.recipe)
        found = predict(job.recipe, shape, machine, backend=job.plan.backend, step=job.plan.step)
    except LauncherError as error:
        return None, error.problems[0].what
    except Exception as error:  # a finished run is never lost to its own summary
        return None, f"the estimate failed: {type(error).__name__}: {error}"
    return found, ""


def _memory(predicted: Prediction | None, why_not: str) -> dict[str, Any]:
    if predicted is None:
        return {"why_not": why_not}
    found = predicted.breakdown
    return {
        "peak_bytes": found.peak_bytes,
        "peak_phase": found.peak.name,
        "phases": {phase.name: phase.num_bytes for phase in found.phases},
        "reserved_bytes": list(found.reserved_bytes),
        "standing": in_words(found.standing),
    }


def _speed(predicted: Prediction | None) -> dict[str, Any]:
    """Rates at full length: shorter rows make more samples and about as many tokens a second."""
    if predicted is None or predicted.time is None:
        return {"predicted_samples_per_s": None, "predicted_tokens_per_s": None}
    return {
        "predicted_samples_per_s": round(predicted.time.rows_per_s, 2),
        "predicted_tokens_per_s": round(predicted.time.tokens_per_s, 1),
    }

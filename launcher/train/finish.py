"""What follows the last step: the best weights if asked for, the model folder, the summary."""

from typing import Any

from launcher.adapters.options import METHODS
from launcher.backends.render import json_text
from launcher.data.layout import LAYOUTS
from launcher.data.templates import choose as choose_template
from launcher.data.templates import keep_with_model
from launcher.facts import Machine
from launcher.models.load_torch import PROBLEM_TYPES
from launcher.registry import load_attribute
from launcher.train.callbacks.evaluate import Evaluate
from launcher.train.checkpoint import load_weights
from launcher.train.ending import best_checkpoint, exported_shapes, mark_finished
from launcher.train.final_model import write_model
from launcher.train.freeze import rebuild
from launcher.train.job import Job
from launcher.train.summary import summary
from launcher.units import format_seconds


def finish(job: Job, callbacks: list[Any], seconds: float, machine: Machine, recipe_name: str) -> None:
    """Best weights if asked for, the model folder, the summary, and what to type next."""
    evaluate = next(callback for callback in callbacks if isinstance(callback, Evaluate))
    if path := best_checkpoint(job):
        best = job.progress.best_step or 0
        if any(best <= start for start in job.starts):  # more has opened since: back to what was open then
            rebuild(job, best - 1)
        load_weights(job, path, num_updates=0)
        job.say(f"exporting the best checkpoint, {path.name}")
        evaluate.again(job)
    elif not evaluate.last and job.eval_store is not None:  # continued after its last step
        evaluate.again(job)
    _export(job)
    if job.world.is_first:
        found = summary(
            job,
            machine,
            recipe_name=recipe_name,
            quality=evaluate.last,
            seconds=seconds,
            measured=job.measure.result(),
        )
    job.world.agreed(lambda: mark_finished(job.folder, json_text(found)) if job.world.is_first else None)
    job.say(
        f"trained {job.progress.step} steps in {format_seconds(seconds)}; model in {job.folder / 'final'}"
    )
    text = "'what a lovely film'" if job.recipe.task == "classification" else "'Who are you?'"
    job.say(f"next: launcher predict {job.folder} {text}")


def _export(job: Job) -> None:
    """Every rank takes part in putting weights together; the first one keeps what is saved, and writes it."""
    wanted = exported_shapes(job)
    weights = {
        name.removeprefix("model."): tensor
        for name, tensor in job.strategy.whole_weights()
        if job.world.is_first and name in wanted
    }
    job.world.agreed(lambda: _write_export(job, weights, wanted) if job.world.is_first else None)


def _write_export(job: Job, weights: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    keep_with_model(job.tokenizer, _template(job))
    if before_save := METHODS.get(job.recipe.adapter.method).before_save:
        load_attribute(before_save)(job.module.model, weights)
    write_model(
        job.folder / "final",
        model=job.module.model,
        tokenizer=job.tokenizer,
        weights=weights,
        facts={
            "recipe": job.plan.recipe_name,
            "task": job.recipe.task,
            "model": job.recipe.model.model_dump(mode="json"),
            "weights_dtype": job.plan.weights_dtype,
            "label_names": list(job.label_names),
            "layout": job.layout,
            "problem_type": PROBLEM_TYPES[LAYOUTS.get(job.layout).labels],
            "max_length": job.store.max_length,
            "token_types": job.store.token_types is not None,
            "data": job.recipe.data.model_dump(mode="json"),
            "precision": job.plan.precision,
            "template": _template(job),
            "steps": job.progress.step,
            "stopped_early": job.progress.stopped_early,
        },
        expected={name.removeprefix("model."): shape for name, shape in shapes.items()},
        is_whole=not METHODS.get(job.recipe.adapter.method).before_save,
    )


def _template(job: Job) -> str:
    """How rows became prompts, by its own name; empty where there are none."""
    if job.recipe.task != "causal_lm" or job.layout == "plain_text":
        return ""
    return choose_template(job.recipe.data.template, job.tokenizer, job.layout)

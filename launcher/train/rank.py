"""The whole life of one rank: agree on a plan, claim the folder, build, train, export, part."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from launcher.adapters.options import METHODS
from launcher.backends.compare import require_batch
from launcher.backends.options import BACKENDS
from launcher.backends.render import json_text
from launcher.data.layout import LAYOUTS
from launcher.data.templates import choose as choose_template
from launcher.data.templates import keep_with_model
from launcher.errors import LaunchMismatch, Problem
from launcher.facts import Machine, Plan, RunArguments, Starter
from launcher.hardware.probe import machine as probe
from launcher.models.load_torch import PROBLEM_TYPES, quiet_loading
from launcher.plan.choose import fingerprint, make_plan, plan_lines
from launcher.plan.compare import read_plan, require_same
from launcher.plan.known_shape import known_shape
from launcher.plan.started import Started, resolve_started
from launcher.plan.write import run_files, write_file
from launcher.precision import choose_tf32
from launcher.registry import load_attribute
from launcher.train.callbacks.evaluate import Evaluate
from launcher.train.checkpoint import load, load_weights
from launcher.train.ending import (
    best_checkpoint,
    exported_shapes,
    is_ended,
    let_save_end,
    mark_finished,
    reopen,
    saving,
    stop_if_asked,
    tell_of_last_save,
)
from launcher.train.final_model import write_model
from launcher.train.first_forward import PrecisionProbe
from launcher.train.folder import Claim, claim
from launcher.train.freeze import rebuild, segments
from launcher.train.job import Job
from launcher.train.loop import train
from launcher.train.memory_probe import probe_memory, wants_probe
from launcher.train.open_log import open_log
from launcher.train.out_of_memory import is_out_of_memory, while_loading
from launcher.train.pieces import pieces_line
from launcher.train.retry import Retry
from launcher.train.setup import build_job, make_callbacks
from launcher.train.stop import Stop
from launcher.train.summary import summary
from launcher.train.world import World, join, leave
from launcher.units import format_seconds


def run_rank(arguments: RunArguments, starter: Starter) -> int:
    """Train as this rank of what was started. Returns the exit code; raises LauncherError."""
    started = resolve_started(arguments, starter)
    machine = probe(started.loaded.recipe.hardware.device)
    _settle_process(machine, starter)
    stop = Stop()
    stop.listen()
    needs_group = BACKENDS.get(started.backend).needs_group
    world = join(starter, machine, needs_group=needs_group)
    failed = True
    try:
        _run(arguments, starter, started, machine, world, stop)
        failed = False
    finally:
        leave(world, failed=failed)
    return 0


def _settle_process(machine: Machine, starter: Starter) -> None:
    """Threads by this machine's limits: starters leave one, or all to every rank."""
    if machine.device == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")  # else any import of deepspeed looks for cards, aloud
    if starter.name != "python" or "OMP_NUM_THREADS" not in os.environ:  # there it is a person's own word
        torch.set_num_threads(max(1, machine.num_cores // starter.local_world_size))
    quiet_loading()


def _run(
    arguments: RunArguments,
    starter: Starter,
    started: Started,
    machine: Machine,
    world: World,
    stop: Stop,
) -> None:
    recipe = started.loaded.recipe
    plan = _agree_on_plan(arguments, started, machine, world)
    if starter.config_file is not None and started.ds_config is not None:
        require_batch(starter.config_file, started.ds_config, plan.step)
    if world.is_first:
        _introduce(started, plan, recipe.adapter.method)
    tf32 = choose_tf32(recipe.training.tf32, plan.precision, machine).enabled
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    folder = Path(recipe.output_dir).expanduser() / started.name
    resume = recipe.training.resume_from_checkpoint
    place: Claim = world.broadcast(
        world.agreed(lambda: claim(folder, resume=resume, new=arguments.new) if world.is_first else None)
    )  # type: ignore[assignment]
    try:
        job = build_job(recipe, plan, place.folder, world, started.ds_config, place.checkpoint)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise while_loading(error, world.device) from None
    job.stop = stop
    if resume == "auto" and is_ended(job, place):
        job.strategy.close()
        return
    # Only now, when everything is there and fits, does the run leave a trace.
    world.agreed(lambda: _take(place, started, job.plan, machine, starter) if world.is_first else None)
    _train(job, place.checkpoint, machine, started.loaded.name)


def _take(place: Claim, started: Started, plan: Plan, machine: Machine, starter: Starter) -> None:
    """Take the run folder and note there what is run."""
    for line in place.take():
        print(line, file=sys.stderr)
    reopen(place.folder)
    files = run_files(started.loaded.recipe, plan, machine, starter, started.ds_config)
    for name, text in files.items():
        write_file(place.folder / name, text)


def _agree_on_plan(arguments: RunArguments, started: Started, machine: Machine, world: World) -> Plan:
    """The first rank plans for the weakest machine; the others verify that they mean the same run."""
    recipe, num_ranks = started.loaded.recipe, world.num_ranks
    machines = world.gather(machine)
    weakest = replace(
        machine,
        gpu_memory_bytes=min(each.gpu_memory_bytes for each in machines),
        compute_capability=min(each.compute_capability for each in machines),
        cpu_has_bf16=all(each.cpu_has_bf16 for each in machines),
    )
    plan = world.broadcast(
        world.agreed(
            lambda: make_plan(
                recipe,
                name=started.name,
                machine=weakest,
                backend=started.backend,
                num_ranks=num_ranks,
                shape=known_shape(recipe),
            )
        )
    )
    world.agreed(lambda: _keep_to(arguments.plan, plan))
    mine = fingerprint(recipe, started.backend, num_ranks, machine.torch_version)
    world.agreed(lambda: _verify(plan, mine, world.rank))
    return plan


def _keep_to(file: str | None, plan: Plan) -> None:
    """Compare with the plan that was made before, if one was named: ranks, backend, batch."""
    if file is not None:
        require_same(read_plan(Path(file)), plan)


def _verify(plan: Plan, mine: str, rank: int) -> None:
    if plan.fingerprint != mine:
        raise LaunchMismatch(
            Problem(
                where=f"rank {rank}",
                what=f"this rank would run {mine}, the plan is {plan.fingerprint}",
                right="the same recipe, command line and versions on every rank",
                type="start all ranks with one command",
            )
        )


def _introduce(started: Started, plan: Plan, method: str) -> None:
    loaded = started.loaded
    lines = [
        f"recipe {plan.recipe_name} ({loaded.path}): {loaded.recipe.summary}",
        f"backend {plan.backend} on {plan.step.num_ranks} {plan.device} process(es), method {method}",
        *plan_lines(plan),
        *loaded.notices,
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


def _train(job: Job, checkpoint: Path | None, machine: Machine, recipe_name: str) -> None:
    callbacks = make_callbacks(job)
    if checkpoint is not None:
        load(job, checkpoint)
    job.metrics = open_log(job, machine)
    try:
        job.say(job.strategy.check())
        if pieces := pieces_line(job):
            job.say(pieces)
        _say_start(job, checkpoint)
        _watch_first_steps(job, callbacks)
        retry = Retry(job)
        if wants_probe(job):
            probe_memory(job, retry)
        started = time.perf_counter()
        save = saving(callbacks)
        job.stop.arm(12 * job.num_trained)
        for _ in segments(job, callbacks) if not job.stop.early else ():
            train(job, callbacks, retry)
        failure = save.complete(job)
        stop_if_asked(job, save)
        _finish(job, callbacks, time.perf_counter() - started, machine, recipe_name)
        tell_of_last_save(job, failure)
    except Exception as error:
        let_save_end(callbacks, error)
        raise
    finally:
        job.metrics.close()
        job.strategy.close()


def _say_start(job: Job, checkpoint: Path | None) -> None:
    counts = f"{job.num_trained:,} of {job.num_parameters:,} parameters"
    job.say(f"trains {counts} for {job.total_steps} steps into {job.folder}")
    if checkpoint is not None:
        job.say(f"resumed from {checkpoint} at step {job.progress.step}")


def _watch_first_steps(job: Job, callbacks: list[Any]) -> None:
    """Precision is seen in the first forward pass, movement after the first updates."""
    PrecisionProbe(job.module).attach(job.say)
    for callback in callbacks:
        callback.start(job)


def _finish(job: Job, callbacks: list[Any], seconds: float, machine: Machine, recipe_name: str) -> None:
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

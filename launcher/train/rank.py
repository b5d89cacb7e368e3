"""The whole life of one rank: agree on a plan, claim the folder, build, train, export, part."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from launcher.backends.compare import require_batch
from launcher.backends.options import BACKENDS
from launcher.facts import Machine, Plan, RunArguments, Starter
from launcher.hardware.probe import machine as probe
from launcher.models.load_torch import quiet_loading
from launcher.plan.choose import plan_lines
from launcher.plan.started import Started, resolve_started
from launcher.plan.write import run_files, write_file
from launcher.precision import choose_tf32
from launcher.train.agreement import agree_on_plan
from launcher.train.checkpoint import load
from launcher.train.ending import (
    is_ended,
    let_save_end,
    reopen,
    saving,
    stop_if_asked,
    tell_of_last_save,
)
from launcher.train.finish import finish
from launcher.train.first_forward import PrecisionProbe
from launcher.train.folder import Claim, claim
from launcher.train.freeze import segments
from launcher.train.job import Job
from launcher.train.loop import train
from launcher.train.memory_probe import probe_memory, wants_probe
from launcher.train.open_log import open_log
from launcher.train.out_of_memory import is_out_of_memory, while_loading
from launcher.train.pieces import pieces_line
from launcher.train.retry import Retry
from launcher.train.setup import build_job, make_callbacks
from launcher.train.stop import Stop
from launcher.train.world import World, join, leave


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
    plan = agree_on_plan(arguments, started, machine, world)
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
        finish(job, callbacks, time.perf_counter() - started, machine, recipe_name)
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

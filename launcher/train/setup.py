"""Builds a run in visible order: data, model, adapter, step, backend, log, callbacks."""

import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from launcher.data.order import RowOrder
from launcher.data.split import Splits
from launcher.facts import Derived, Plan
from launcher.hardware.free_space import require_free
from launcher.models.names_torch import parameter_names
from launcher.optim.schedule import warmup_updates
from launcher.recipe.evaluation_rules import metrics_of
from launcher.recipe.freezing import opening_steps, openings
from launcher.recipe.schema import Recipe
from launcher.recipe.training import Every, TrainingOptions
from launcher.train import freeze
from launcher.train.audit import Audit
from launcher.train.callbacks.callback import Callback
from launcher.train.callbacks.early_stop import EarlyStop
from launcher.train.callbacks.evaluate import Evaluate
from launcher.train.callbacks.log import Log
from launcher.train.callbacks.movement import Movement
from launcher.train.callbacks.numbers import WatchNumbers
from launcher.train.callbacks.save import Save
from launcher.train.checkpoint import read_progress
from launcher.train.checkpoint_files import bytes_held
from launcher.train.connected import build_module, connect
from launcher.train.job import Job
from launcher.train.memory_watch import MemoryWatch
from launcher.train.metrics_log import MetricsLog
from launcher.train.prepared import Prepared, prepare_data
from launcher.train.state import Progress
from launcher.train.world import World
from launcher.units import format_bytes


def build_job(
    recipe: Recipe,
    plan: Plan,
    folder: Path,
    world: World,
    ds_config: dict[str, Any] | None,
    checkpoint: Path | None = None,
) -> Job:
    """Everything, ready for the first step, or for the one after `checkpoint`, which is not loaded yet.

    Raises LauncherError; every rank must call.
    """
    measure = MemoryWatch(world.device)
    prepared = world.agreed(lambda: _data(recipe, world))
    tokenizer, splits = prepared.tokenizer, prepared.splits
    store, eval_store = prepared.store, prepared.eval_store
    if world.is_first:
        print("\n".join(prepared.notices), file=sys.stderr, flush=True)
    chosen = Derived(key="max_length", value=store.max_length, reason=store.length_reason)
    plan = replace(plan, derived=(*plan.derived, chosen))
    order = RowOrder(
        store.lengths, plan.step.global_batch_size, recipe.training.seed, recipe.data.group_by_length
    )
    total = total_steps(recipe.training, order.steps_per_epoch)
    opened, said = world.agreed(lambda: _openings(recipe, splits, order.steps_per_epoch, total))
    if world.is_first and said:
        print("\n".join(said), file=sys.stderr, flush=True)

    def build(job: Job, step: int) -> None:
        """Module and strategy over what is open after so many steps, the base model's weights in them."""
        torch.manual_seed(recipe.training.seed)
        module = world.agreed(lambda: build_module(recipe, plan, world, splits, tokenizer))
        freeze.apply(module.model, job.openings, step)
        # Counted now: a backend may leave placeholders of no elements behind.
        sizes = [(parameter.requires_grad, parameter.numel()) for parameter in module.parameters()]
        job.num_trained = sum(size for is_trained, size in sizes if is_trained)
        job.num_parameters = sum(size for _, size in sizes)
        job.num_opened = sum(p.numel() for name, p in module.model.named_parameters() if name in job.openings)
        job.shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
        job.module = module
        job.strategy = connect(recipe, plan, world, module, ds_config, freeze.opened_at(job))

    job = Job(
        recipe=recipe,
        plan=plan,
        folder=folder,
        world=world,
        tokenizer=tokenizer,
        label_names=splits.label_names,
        layout=splits.layout,
        store=store,
        eval_store=eval_store,
        order=order,
        total_steps=total,
        warmup=warmup_updates(recipe.training.warmup, total),
        metrics=MetricsLog.silent(),
        measure=measure,
        progress=read_progress(checkpoint) if checkpoint else Progress(),
        openings=opened,
        build=build,
    )
    job.note_phases()
    build(job, job.progress.step)
    measure.mark("load")
    world.agreed(lambda: _check_disk(job))
    return job


def _openings(
    recipe: Recipe, splits: Splits, steps_per_epoch: int, total: int
) -> tuple[dict[str, int], list[str]]:
    """When each parameter opens, off the module tree: what names nothing is refused before weights come."""
    if not recipe.freeze.is_used:
        return {}, []
    names = parameter_names(recipe.model, task=recipe.task, num_labels=max(1, len(splits.label_names)))
    found = openings(recipe.freeze, names)
    steps, late = opening_steps(found.at_epoch, steps_per_epoch=steps_per_epoch, total_steps=total)
    return steps, [*found.notices, *late]


def _data(recipe: Recipe, world: World) -> Prepared:
    def say(line: str) -> None:
        if world.is_first:
            print(line, file=sys.stderr, flush=True)

    return prepare_data(recipe, say=say, local_rank=int(os.environ.get("LOCAL_RANK", world.rank)))


def total_steps(options: TrainingOptions, steps_per_epoch: int) -> int:
    """Steps of the run: `max_steps`, or the epochs' (a part of an epoch is rounded up)."""
    if options.max_steps is not None:
        return options.max_steps
    return max(1, math.ceil(options.num_train_epochs * steps_per_epoch))


def make_callbacks(job: Job) -> list[Callback]:
    """In the order in which they act after a step: look, evaluate, save, log."""
    options = job.recipe.training

    def steps(every: Every | None) -> int | None:
        if every is None:
            return None
        per_epoch = job.order.steps_per_epoch
        return every.in_steps(rows_per_step=options.global_batch_size, steps_per_epoch=per_epoch)

    evaluate = Evaluate(steps(options.eval_steps), best_metric(job.recipe))
    save = Save(steps(options.save_steps), options.save_total_limit, keep_best=options.load_best_model_at_end)
    early = EarlyStop(evaluate, options.early_stopping_patience)
    return [Log(), WatchNumbers(), Movement(), Audit(), evaluate, early, save]


def best_metric(recipe: Recipe) -> str:
    """The metric that tells the best model: the recipe's, or the task's first."""
    return (recipe.training.metric_for_best_model or metrics_of(recipe)[0]).removeprefix("eval_")


def _check_disk(job: Job) -> None:
    """Refuse before the first step what would fail at the last save."""
    options = job.recipe.training
    # One more than is kept: the newest is whole before the oldest goes.
    saves = options.save_steps is not None or options.load_best_model_at_end or bool(job.starts)
    kept = (options.save_total_limit or 1) + 1 + options.load_best_model_at_end if saves else 0
    # A checkpoint holds an fp32 weight and two moments a trained parameter, the final model the weight.
    most = max(job.num_trained, job.num_opened)
    one, final = 12 * most, 4 * most
    # What a continued run has on the disk already is part of that.
    held = bytes_held(job.folder) if options.resume_from_checkpoint else 0
    require_room(job.folder, kept=kept, checkpoint_bytes=one, final_bytes=final, held_bytes=held)


def require_room(
    folder: Path, *, kept: int, checkpoint_bytes: int, final_bytes: int, held_bytes: int = 0
) -> None:
    """Raise DoesNotFit where the folder's disk cannot hold the checkpoints and the final model."""
    needed = max(0, kept * checkpoint_bytes + final_bytes - held_bytes)
    one, final = format_bytes(checkpoint_bytes), format_bytes(final_bytes)
    require_free(
        folder,
        needed,
        takes="checkpoints and final model need",
        right=f"{format_bytes(needed)} free: {kept} checkpoints of {one} and a final model of {final}",
        type="--output_dir FOLDER_ON_A_LARGER_DISK, or save_total_limit=1, or save_steps=no",
    )

"""Several runs in one process a rank: imports cost more than steps. Started like run.py, by any starter.

    accelerate launch --config_file accelerate_configs/zero2.yaml -m tests.equivalence.cells FOLDER BACKEND

Cell names behind the backend run only these.

Each cell is a whole life of a rank, from its command line to its exported model. Before a cell's first
step its trained tensors are kept, so that a test can tell how far they have moved.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import launcher.train.rank as rank
from launcher.backends.operators import ASYNC_IO, is_compiled
from launcher.backends.options import BACKENDS
from launcher.facts import RunArguments, Starter
from launcher.hardware.probe import machine as probe
from launcher.process.arguments import parse
from launcher.process.starter import read_starter
from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.retry import Retry

EXACT = ("classifier-full", "classifier-lora", "generator-full", "generator-lora")
CLOSE = ("classifier-full-bf16", "generator-lora-bf16")
SEEDS = (1, 2, 3, 4, 5)
DROPOUT = tuple(f"classifier-dropout-{seed}" for seed in SEEDS)
# Models with matrices that DeepSpeed finds worth a file on a disk: 1 MiB a rank and more.
WIDE = tuple(f"{cell}-wide" for cell in EXACT)
CONTROLS = ("classifier-full-batch6", "generator-full-wrong")


def cells_of(backend: str) -> tuple[str, ...]:
    """What runs on a backend: the controls need one place each, dropout's statistics two."""
    if backend == "zero3_nvme":
        return WIDE
    cells = EXACT + CLOSE
    if backend in ("single_gpu", "multi_gpu"):
        cells += DROPOUT
    if backend == "single_gpu" and is_compiled(ASYNC_IO, os.environ):
        cells += WIDE
    return cells + {"single_gpu": CONTROLS[:1], "multi_gpu": CONTROLS[1:]}.get(backend, ())


def words(folder: Path, backend: str, cell: str) -> list[str]:
    """The command line of a cell."""
    kind, method, *more = cell.split("-")
    overrides = [f"adapter={method}"] if method in ("full", "lora") else []
    overrides += ["lora_target_modules=all-linear", "lora_r=4"] if method == "lora" else []
    if "bf16" in more:
        overrides.append("precision=bf16")
    if "wide" in more:
        overrides += ["max_steps=10", f"model_name_or_path={folder / f'{kind}-wide'}"]
    if backend == "zero3_nvme":
        overrides.append(f"backend.nvme_path={folder / 'disk'}")
    if "batch6" in more:
        overrides.append("global_batch_size=6")
    if method == "dropout":
        overrides += [f"seed={more[0]}", f"model_name_or_path={folder / 'bert-dropout'}"]
    name = ["--recipe", str(folder / f"{kind}.yaml"), "--name", f"{backend}-{cell}", "--backend", backend]
    return [*name, "--new", *overrides]


def keep_start(job: Job) -> None:
    """Write the trained tensors as they are before the first step."""
    from safetensors.torch import save_file

    state = {name.removeprefix("model."): held["weight"].cpu().clone() for name, held in job.strategy.state()}
    if job.world.is_first:
        save_file(state, job.folder / "start.safetensors")


def run_cell(folder: Path, backend: str, cell: str, starter: Starter) -> None:
    """One run; a cell called `wrong` divides by its own rank's targets, as naive code does."""
    change = _divide_by_own_targets if cell.endswith("wrong") else None
    run_with_start(parse(words(folder, backend, cell)), starter, change)


def run_with_start(
    arguments: RunArguments,
    starter: Starter,
    change: Callable[[Job], None] | None = None,
    after: Callable[[Job], None] | None = None,
) -> None:
    """A rank's whole life that keeps its first weights; `change` and `after` see the job around training."""
    train = rank.train

    def with_start(job: Job, callbacks: Sequence[Callback], retry: Retry) -> None:
        keep_start(job)
        if change is not None:
            change(job)
        train(job, callbacks, retry)
        if after is not None:
            after(job)

    rank.train = with_start
    try:
        rank.run_rank(arguments, starter)
    finally:
        rank.train = train


def _divide_by_own_targets(job: Job) -> None:
    """The mean of the ranks' means."""
    original = job.store.num_targets.copy()
    # kept tokens are mapped from a file: this run meddles with a copy
    object.__setattr__(job.store, "num_targets", original.copy())
    order = job.order.window

    def window(step: int):  # type: ignore[no-untyped-def]
        from launcher.data.order import cut

        rows = order(step)
        mine = [row for part in cut(rows, job.store.lengths, job.plan.step, job.world.rank) for row in part]
        job.store.num_targets[rows] = 0
        job.store.num_targets[mine] = original[mine] * job.world.num_ranks
        return rows

    job.order.window = window  # type: ignore[method-assign]


def main(folder: Path, backend: str, cells: Sequence[str]) -> None:
    """The named cells of a backend, else all, in one process group: a second one would meet the first."""
    starter = read_starter(os.environ, parse(["--backend", backend]))
    needs_group = BACKENDS.get(backend).needs_group
    world = rank.join(starter, probe("cpu"), needs_group=needs_group)
    leave = rank.leave
    rank.join = lambda *_, **__: world
    rank.leave = lambda *_, **__: world.barrier()
    for cell in cells or cells_of(backend):
        run_cell(folder, backend, cell, starter)
    leave(world, failed=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])

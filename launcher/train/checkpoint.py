"""A job's training state to and from the one form of every backend: fp32 weight and moments by name.

Each rank holds its share of the parameters (every n-th), so writing is spread; reading takes tensor by
tensor. No pickle, no backend's own layout: another backend on another number of ranks reads it as well.
Frozen weights are not in it. `checkpoint_write` puts it on the disk, `checkpoint_files` knows what is whole.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from launcher import __version__
from launcher.backends.strategy_torch import ParameterState
from launcher.optim.table import OPTIMIZERS, WITHOUT_STATED_OPTIMIZER, keeps_state
from launcher.train.checkpoint_checks import Held, check_continuity, check_moments, check_names, check_shapes
from launcher.train.checkpoint_files import LOOP, read_manifest
from launcher.train.checkpoint_write import Contents, texts
from launcher.train.job import Job
from launcher.train.state import Progress

MODEL_KEY = "model.model_name_or_path"
_ANYBODYS = ("final", "merged", "model", "base", "output", "exported")  # folders that say nothing of a model
_SHARD_BYTES = 2**30
_SLACK_BYTES = 2**16


def contents(job: Job) -> Contents:
    """Everything but the tensors, as of now. Every rank must call."""
    job.progress.loss_scale = job.strategy.loss_scale.state()
    job.progress.unlogged = job.world.gather(job.unlogged.state())
    has_moments = job.progress.moment_updates > 0
    return Contents(
        step=job.progress.step,
        texts=texts(job.progress.to_dict()),
        manifest=_manifest(job),
        needed_bytes=(12 if has_moments else 4) * job.num_trained + _SLACK_BYTES,
    )


def _manifest(job: Job) -> dict[str, Any]:
    return {
        "format": 1,
        "step": job.progress.step,
        "backend": job.plan.backend,
        "num_ranks": job.world.num_ranks,
        "global_batch_size": job.recipe.training.global_batch_size,
        "num_updates": job.progress.moment_updates,
        "num_parameters": job.num_trained,
        "continues": continuity(job),
        "versions": {"launcher": __version__, "torch": torch.__version__},
    }


def continuity(job: Job) -> dict[str, Any]:
    """The facts that must not change in the middle of a run: they decide rows, order and weights."""
    recipe = job.recipe
    return {
        "training.global_batch_size": recipe.training.global_batch_size,
        "training.seed": recipe.training.seed,
        "data.rows": len(job.store),
        "data.group_by_length": recipe.data.group_by_length,
        "data.max_length": job.store.max_length,
        "data.tokens": int(job.store.offsets[-1]),
        "adapter.method": recipe.adapter.method,
        "training.optim": OPTIMIZERS[recipe.training.optim].state,
        MODEL_KEY: recipe.model.model_name_or_path,
    }


def require_continuity(job: Job, checkpoint: Path) -> None:
    """Raise ResumeMismatch where the recipe now describes other rows, another order or other weights.

    The kind of optimizer states may change where only the weights are taken over.
    """
    then, now = WITHOUT_STATED_OPTIMIZER | read_manifest(checkpoint)["continues"], continuity(job)
    if job.recipe.training.resume_weights_only:
        del now["training.optim"]
    if _same_name(str(then.get(MODEL_KEY, "")), str(now[MODEL_KEY])):
        del now[MODEL_KEY]  # on another machine it lies elsewhere; its shapes are compared
    check_continuity(then, now, checkpoint)


def _same_name(then: str, now: str) -> bool:
    """`/root/models/Qwen2.5-7B`, `/data/Qwen2.5-7B` and the hub's `Qwen/Qwen2.5-7B` are one model."""
    name = Path(now).name
    is_anybodys = name in _ANYBODYS or name.startswith("checkpoint-")
    return Path(then).name == name and not is_anybodys and ("/" in then or "/" in now)


def to_host(key: str, tensor: Tensor) -> Tensor:
    """A host copy of its own, as it is kept: fp32."""
    copy = tensor.detach().to("cpu", torch.float32, copy=True)
    return copy.contiguous()


def shards(
    job: Job, copy: Callable[[str, Tensor], Tensor] = to_host, *, shard_bytes: int = _SHARD_BYTES
) -> Iterator[dict[str, Tensor]]:
    """This rank's tensors in groups of about a gibibyte. Every rank must read to the end."""
    held: dict[str, Tensor] = {}
    size = 0
    for index, (name, state) in enumerate(job.strategy.state()):
        if index % job.world.num_ranks != job.world.rank:
            continue
        for key, tensor in state.items():
            held[f"{name}/{key}"] = copy(f"{name}/{key}", tensor)
            size += held[f"{name}/{key}"].nbytes
        if size >= shard_bytes:
            yield held
            held, size = {}, 0
    if held:
        yield held


class _Reader:
    """Tensors of a checkpoint by parameter name, mapped into memory and read when asked for."""

    def __init__(self, checkpoint: Path) -> None:
        self.files = [
            safe_open(path, framework="pt") for path in sorted(checkpoint.glob("state-*.safetensors"))
        ]
        self.place = {key: file for file in self.files for key in file.keys()}  # noqa: SIM118
        self.keys: dict[str, list[str]] = {}
        for place in self.place:
            name, _, key = place.rpartition("/")
            self.keys.setdefault(name, []).append(key)

    def shapes(self) -> Held:
        """Parameter to what is held of it, with its shape."""
        return {
            name: {
                key: tuple(self.place[f"{name}/{key}"].get_slice(f"{name}/{key}").get_shape()) for key in keys
            }
            for name, keys in self.keys.items()
        }

    def read(self, name: str) -> ParameterState:
        """Weight and optimizer state; nothing of a parameter that was not trained then."""
        return {
            key: self.place[f"{name}/{key}"].get_tensor(f"{name}/{key}") for key in self.keys.get(name, ())
        }


def read_progress(checkpoint: Path) -> Progress:
    """The loop's counters when the checkpoint was written."""
    return Progress.from_dict(json.loads((checkpoint / LOOP).read_text(encoding="utf-8")))


def load(job: Job, checkpoint: Path) -> None:
    """Continue from a checkpoint: weights, moments, counters, loss scale. Every rank must call.

    Raises ResumeMismatch where the recipe now describes other rows, another order or other weights, and
    where moments are missing, unless only the weights were asked for.
    """
    manifest = read_manifest(checkpoint)
    require_continuity(job, checkpoint)
    job.progress = read_progress(checkpoint)
    if job.recipe.training.resume_weights_only:
        _start_moments_anew(job.progress)
        job.say(f"{checkpoint.name}: weights and position only; the optimizer's moments start anew")
    job.note_phases()
    load_weights(job, checkpoint, num_updates=job.progress.moment_updates)
    job.strategy.restore_loss_scale(job.progress.loss_scale)
    job.unlogged.load_state(job.progress.unlogged, job.world.rank, job.world.num_ranks)
    shape = (manifest["backend"], manifest["num_ranks"])
    if shape != (job.plan.backend, job.world.num_ranks):
        job.say(
            f"{checkpoint.name} was written by {shape[0]} on {shape[1]} rank(s): rows, order and optimizer "
            "state carry over; dropout masks depend on the ranks and do not"
        )


def _start_moments_anew(progress: Progress) -> None:
    """From here on updates are counted for the optimizer, which knows of none before."""
    gone = progress.moment_updates
    progress.moments_start = progress.updates
    progress.phase_updates = {key: max(0, count - gone) for key, count in progress.phase_updates.items()}


def load_weights(job: Job, checkpoint: Path, *, num_updates: int) -> None:
    """Weights, and with `num_updates` > 0 the moments too. What opens at this very step is not held yet."""
    reader = _Reader(checkpoint)
    held = reader.shapes()
    wanted = {name for name, _ in job.strategy.named_trainable()}
    check_names(wanted - (job.just_opened() - held.keys()), set(held), checkpoint)
    check_moments(held, num_updates if keeps_state(job.recipe.training.optim) else 0, checkpoint)
    check_shapes({name: job.shapes[name] for name in held}, held, checkpoint)
    job.strategy.load_state(reader.read, num_updates=num_updates)

"""Whole checkpoints in one form for every backend: fp32 weight and moments by parameter name.

A checkpoint is written beside its place, its manifest (sizes and hashes) last, then renamed: a half
one is never picked up. No pickle. Each rank writes its share of the parameters, so writing is spread;
reading takes tensor by tensor. Because the form knows no backend, another one can read it.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from launcher import __version__
from launcher.backends.strategy_torch import ParameterState
from launcher.errors import Problem, ResumeMismatch
from launcher.train.job import Job
from launcher.train.state import Progress

MANIFEST, LOOP = "manifest.json", "loop.json"
_NAME = re.compile(r"checkpoint-(\d+)")
_SHARD_BYTES = 2**30
_README = "Training state for resuming: do not delete single files, the run checks them all.\n"


def save(job: Job) -> Path:
    """Write `checkpoint-<step>`; every rank must call. Returns its path once it is whole."""
    final = job.folder / f"checkpoint-{job.progress.step}"
    temporary = job.folder / f".writing-checkpoint-{job.progress.step}"
    if job.world.is_first:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
    job.world.barrier()
    _write_shards(job, temporary)
    if job.world.is_first:
        _write_text(temporary / LOOP, json.dumps(_loop_state(job), indent=2))
        _write_text(temporary / "README", _README)
    job.world.barrier()
    mine = {path.name: _entry(path) for path in _my_files(temporary, job.world.rank)}
    entries = {name: entry for part in job.world.gather(mine) for name, entry in part.items()}
    if job.world.is_first:
        _write_text(temporary / MANIFEST, json.dumps(_manifest(job, entries), indent=2))
        _sync_folder(temporary)
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        _sync_folder(job.folder)
    job.world.barrier()
    return final


def _write_shards(job: Job, folder: Path) -> None:
    """This rank's parameters (every n-th), in files of about a gibibyte so that memory stays flat."""
    held: dict[str, torch.Tensor] = {}
    number = size = 0
    for index, (name, state) in enumerate(job.strategy.state()):
        if index % job.world.num_ranks != job.world.rank:
            continue
        for key, tensor in state.items():
            copy = tensor.detach().to("cpu", torch.float32 if key != "weight" else tensor.dtype, copy=True)
            held[f"{name}/{key}"] = copy.contiguous()
            size += copy.nbytes
        if size >= _SHARD_BYTES:
            _write_shard(folder, job.world.rank, number, held)
            held, number, size = {}, number + 1, 0
    if held:
        _write_shard(folder, job.world.rank, number, held)


def _write_shard(folder: Path, rank: int, number: int, held: dict[str, torch.Tensor]) -> None:
    save_file(held, folder / f"state-{rank:04d}-{number:04d}.safetensors")


def _my_files(folder: Path, rank: int) -> list[Path]:
    mine = sorted(folder.glob(f"state-{rank:04d}-*.safetensors"))
    return mine + ([folder / LOOP, folder / "README"] if rank == 0 else [])


def _entry(path: Path) -> dict[str, Any]:
    """Size and hash, after the bytes have reached the disk."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    return {"bytes": path.stat().st_size, "sha256": digest}


def _loop_state(job: Job) -> dict[str, Any]:
    job.progress.loss_scale = job.strategy.loss_scale.state()
    return job.progress.to_dict()


def _manifest(job: Job, entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "step": job.progress.step,
        "backend": job.plan.backend,
        "num_ranks": job.world.num_ranks,
        "continues": continuity(job),
        "versions": {"launcher": __version__, "torch": torch.__version__},
        "files": entries,
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
        "adapter.method": recipe.adapter.method,
        "model.model_name_or_path": recipe.model.model_name_or_path,
    }


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def steps_saved(folder: Path) -> list[int]:
    """Steps of the checkpoint folders there, ascending, whole or not."""
    found = (_NAME.fullmatch(path.name) for path in folder.glob("checkpoint-*"))
    return sorted(int(match.group(1)) for match in found if match)


def fault(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint; None where every file has its size and hash."""
    try:
        manifest = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
        for name, entry in manifest["files"].items():
            if (checkpoint / name).stat().st_size != entry["bytes"]:
                return f"{name} has another size than the manifest says"
            if _entry(checkpoint / name) != entry:
                return f"{name} has another content than the manifest says"
    except FileNotFoundError as error:
        return f"{Path(str(error.filename)).name} is missing"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{MANIFEST} is damaged"
    return None


def newest_whole(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, and a line for each newer one that was passed over."""
    passed: list[str] = []
    for step in reversed(steps_saved(folder)):
        path = folder / f"checkpoint-{step}"
        reason = fault(path)
        if reason is None:
            return path, passed
        passed.append(f"{path.name} is not whole ({reason}): passed over")
    return None, passed


def prune(folder: Path, *, limit: int | None, keep: int | None) -> None:
    """Remove the oldest checkpoints beyond `limit`; never the newest, never the one of step `keep`."""
    if limit is None:
        return
    steps = steps_saved(folder)
    kept = {steps[-1], keep} if steps else set()
    for step in steps[: max(0, len(steps) - limit)]:
        if step not in kept:
            shutil.rmtree(folder / f"checkpoint-{step}")


class _Reader:
    """Tensors of a checkpoint by parameter name, read when asked for."""

    def __init__(self, checkpoint: Path) -> None:
        self.files = [
            safe_open(path, framework="pt") for path in sorted(checkpoint.glob("state-*.safetensors"))
        ]
        self.place = {key: file for file in self.files for key in file.keys()}  # noqa: SIM118
        self.keys: dict[str, list[str]] = {}
        for place in self.place:
            name, _, key = place.rpartition("/")
            self.keys.setdefault(name, []).append(key)

    def names(self) -> set[str]:
        return set(self.keys)

    def read(self, name: str) -> ParameterState:
        """Weight and optimizer state; nothing of a parameter that was not trained then."""
        return {
            key: self.place[f"{name}/{key}"].get_tensor(f"{name}/{key}") for key in self.keys.get(name, ())
        }


def read_progress(checkpoint: Path) -> Progress:
    """The loop's counters when the checkpoint was written."""
    return Progress(**json.loads((checkpoint / LOOP).read_text(encoding="utf-8")))


def load(job: Job, checkpoint: Path) -> None:
    """Continue from a checkpoint: weights, moments, counters, loss scale. Every rank must call.

    Raises ResumeMismatch where the recipe now describes other rows, another order or other weights.
    """
    manifest = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
    _check_continuity(manifest["continues"], continuity(job), checkpoint)
    job.progress = read_progress(checkpoint)
    job.note_phases()
    load_weights(job, checkpoint, num_updates=job.progress.updates)
    job.strategy.restore_loss_scale(job.progress.loss_scale)
    shape = (manifest["backend"], manifest["num_ranks"])
    if shape != (job.plan.backend, job.world.num_ranks):
        job.say(
            f"{checkpoint.name} was written by {shape[0]} on {shape[1]} rank(s): rows, order and optimizer "
            "state carry over; dropout masks depend on the ranks and do not"
        )


def load_weights(job: Job, checkpoint: Path, *, num_updates: int) -> None:
    """Weights, and with `num_updates` > 0 the moments too. What opens at this very step is not held yet."""
    reader = _Reader(checkpoint)
    wanted = {name for name, _ in job.strategy.named_trainable()}
    held = reader.names()
    _check_names(wanted - (job.just_opened() - held), held, checkpoint)
    job.strategy.load_state(reader.read, num_updates=num_updates)


def _check_continuity(then: dict[str, Any], now: dict[str, Any], checkpoint: Path) -> None:
    changed = [key for key in now if then.get(key) != now[key]]
    if changed:
        raise ResumeMismatch(
            [
                Problem(
                    where=checkpoint.name,
                    what=f"{key} was {then.get(key)!r} when this was written, it is {now[key]!r} now",
                    right="the same value: it decides which rows are still to come, and which weights",
                    type=f"{key}={then.get(key)}, or --new to start over",
                )
                for key in changed
            ]
        )


def _check_names(wanted: set[str], held: set[str], checkpoint: Path) -> None:
    odd = sorted(wanted ^ held)
    if odd:
        raise ResumeMismatch(
            Problem(
                where=checkpoint.name,
                what=f"{len(odd)} trained tensors are not in both checkpoint and model ({odd[0]}, ...)",
                right=f"the {len(held)} tensors that the checkpoint holds",
                type="the recipe of this run (recipe.yaml in its folder), or --new to start over",
            )
        )

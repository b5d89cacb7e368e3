"""What a rank settles before torch is imported: its card, its port, stale locks, the search path.

Everything here is cheap, is done once, and either returns lines for the person or refuses.
"""

import os
import shlex
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from launcher.backends.accelerate_file import read_file
from launcher.backends.disk import require_usable
from launcher.backends.lint import read_ds_file
from launcher.backends.options import BACKENDS
from launcher.errors import DataError, HardwareError, Problem, RecipeError
from launcher.facts import RunArguments, Starter
from launcher.hardware import ports
from launcher.hardware.platform_facts import find_platform
from launcher.models.source import find_model
from launcher.plan.replanned import memory_words
from launcher.plan.room_by_mount import require_rooms
from launcher.plan.started import Started, resolve_started
from launcher.plan.write import COMMAND_VARIABLE
from launcher.process.board import show_run
from launcher.process.gpus import peer_environment, visible_gpus
from launcher.process.launch_line import config_file_above
from launcher.process.on_platform import require_card, settle_platform
from launcher.process.op_lock import clear_stale_locks
from launcher.recipe.batch import nearest_reachable, solve
from launcher.recipe.check import data_problems
from launcher.recipe.load import LoadedRecipe
from launcher.recipe.tracking import missing_trackers


def prepare(arguments: RunArguments, starter: Starter, environ: MutableMapping[str, str]) -> tuple[str, ...]:
    """Settle the environment and return what to tell. Raises LauncherError where it cannot work."""
    lines = [] if arguments.recipe_was_given else [f"no --recipe given: running '{arguments.recipe}'"]
    lines += settle_platform(environ)
    started = resolve_started(arguments, starter)  # mistakes are told before torch costs seconds
    loaded = started.loaded
    require_card(environ, loaded.recipe.hardware.device, arguments.recipe)
    lines += _files_notices(starter, environ)
    put_bin_first(environ)
    # accelerate exports "true" where its YAML is silent: transformers would give other ranks an empty model
    environ.pop("FSDP_CPU_RAM_EFFICIENT_LOADING", None)
    require_ready(loaded, visible_gpus(environ))
    lines += require_usable(started.ds_config or {}, environ)
    lines += _settle_cards(loaded, arguments, starter, environ)
    if starter.name == "deepspeed" and starter.world_size > 1 and starter.rank == 0:
        require_free_port(environ)
    if starter.local_rank == 0:
        lines += clear_stale_locks(environ)
    if starter.rank == 0 and COMMAND_VARIABLE not in environ:  # `launcher run` has told all that already
        lines += _room_and_curves(started, environ)
    return tuple(lines)


def _room_and_curves(started: Started, environ: MutableMapping[str, str]) -> list[str]:
    """Raises DoesNotFit for a disk that is too small; on a rented machine, its disks and panel in lines."""
    recipe = started.loaded.recipe
    lines = require_rooms(recipe, started.name, environ)
    if find_platform(environ) is None:
        return []
    if "tensorboard" in recipe.tracking.report_to:
        lines += show_run(Path(recipe.output_dir).expanduser() / started.name, environ)
    return lines


def _files_notices(starter: Starter, environ: MutableMapping[str, str]) -> list[str]:
    """What a person's files say without effect. Raises RecipeError for what accelerate let pass in its own.

    `launcher run` has told all that already.
    """
    if COMMAND_VARIABLE in environ:
        return []
    lines = [*read_ds_file(Path(starter.config_file)).notices] if starter.config_file else []
    above = config_file_above(environ) if starter.name == "accelerate" else None
    return lines + ([*read_file(above).notices] if above else [])


def put_bin_first(environ: MutableMapping[str, str]) -> None:
    """DeepSpeed looks for ninja on PATH: the one installed beside this Python comes first."""
    folder = str(Path(sys.executable).parent)
    others = [part for part in environ.get("PATH", os.defpath).split(os.pathsep) if part != folder]
    environ["PATH"] = os.pathsep.join([folder, *others])


def _settle_cards(
    loaded: LoadedRecipe, arguments: RunArguments, starter: Starter, environ: MutableMapping[str, str]
) -> list[str]:
    """Refuse more ranks than cards; one process on a box with several uses one, and says so."""
    gpus = visible_gpus(environ)
    takes_all = BACKENDS.get(loaded.recipe.backend.name).takes_all_cards
    alone = starter.world_size == 1 and len(gpus) > 1 and not takes_all
    if loaded.recipe.hardware.device == "cpu":
        return []
    require_cards(loaded, starter.local_world_size, len(gpus))
    if starter.world_size > 1:  # of whichever starter: only accelerate sets them, and not for every such card
        environ.update(peer_environment(environ, gpus))
    if not alone:
        return []
    environ["CUDA_VISIBLE_DEVICES"] = gpus[0]
    again = f"launcher run {shlex.quote(arguments.recipe)} --gpus {len(gpus)}"
    return [f"1 of {len(gpus)} GPUs used (id {gpus[0]}); for all of them: {again}"]


def require_ready(loaded: LoadedRecipe, gpus: Sequence[str]) -> None:
    """Raise what can be seen without torch, all at once: no card, data files, model folder or tracker."""
    missing = [*data_problems(loaded), *missing_trackers(loaded.recipe.tracking)]
    try:
        find_model(loaded.recipe.model)
    except RecipeError as error:
        missing += error.problems
    if loaded.recipe.hardware.device == "cuda" and not gpus:
        raise HardwareError([_no_card(), *missing])
    if missing:
        raise DataError(missing)


def _no_card() -> Problem:
    return Problem(
        where="hardware.device",
        what="this recipe needs a GPU, and none is visible",
        right="a machine with one (`nvidia-smi` lists it); `launcher rehearse` proves the run without",
        type="hardware.device=cpu to run it here all the same, slowly",
    )


def require_cards(loaded: LoadedRecipe, num_processes: int, num_gpus: int) -> None:
    """Raise HardwareError when there are fewer cards than processes, with what would train the same."""
    if num_gpus == 0 or num_processes <= num_gpus:
        return
    raise HardwareError(
        Problem(
            where="number of processes",
            what=f"{num_processes} processes, but {num_gpus} GPU{'s' * (num_gpus > 1)} here",
            right=f"at most {num_gpus}; {_same_batch(loaded, num_gpus)}"
            + memory_words(loaded.recipe, num_gpus),
            type=f"launcher run {shlex.quote(loaded.name)} --gpus {num_gpus}   (accelerate: --num_processes "
            f"{num_gpus}, torchrun: --nproc_per_node {num_gpus}, deepspeed: --num_gpus {num_gpus})",
        )
    )


def _same_batch(loaded: LoadedRecipe, num_gpus: int) -> str:
    training = loaded.recipe.training
    size, asked = training.global_batch_size, training.per_device_train_batch_size
    if size % num_gpus:
        near = " or ".join(map(str, nearest_reachable(size, num_gpus)))
        return f"the global batch of {size} rows does not divide over {num_gpus}: {near} would"
    if asked == "auto":
        return f"the global batch stays {size} rows, {size // num_gpus} a GPU by accumulation"
    step = solve(size, asked, num_gpus)
    return (
        f"the global batch stays {size} = {step.micro_batch_size} rows x {step.accumulation_steps} "
        f"accumulation x {num_gpus} GPUs"
    )


def require_free_port(environ: MutableMapping[str, str]) -> None:
    """`deepspeed` always meets on 29500: say who holds it before ranks join another job's rendezvous."""
    port = int(environ.get("MASTER_PORT", str(ports.DEEPSPEED_PORT)))
    if environ.get("MASTER_ADDR", "127.0.0.1") not in ("127.0.0.1", "localhost") or ports.is_free(port):
        return
    raise HardwareError(
        Problem(
            where=f"port {port}",
            what=f"the rendezvous port is held by {ports.holder(port)}",
            right="another port for this run; nothing is killed for you",
            type=f"deepspeed --master_port {ports.free_port()} ...   (launcher run finds one by itself)",
        )
    )

"""A person's own DeepSpeed JSON and Accelerate YAML, held against a recipe before anything starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from launcher.backends.accelerate_file import AccelerateFile, read_file
from launcher.backends.compare import require_batch
from launcher.backends.lint import DsFile, read_ds_file
from launcher.backends.options import BACKENDS
from launcher.errors import Conflict, Problem, RecipeError
from launcher.facts import RunArguments, Starter
from launcher.plan.choose import DEFAULT_MICRO_BATCH
from launcher.plan.started import Started, resolve_started
from launcher.process.config_files import find_config
from launcher.recipe.batch import solve

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class OwnFiles:
    """What the files decide together; every field is empty where neither says it."""

    backend: str | None = None
    num_processes: int | None = None
    ds: DsFile | None = None
    mixed_precision: str | None = None
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    notices: tuple[str, ...] = ()


def read_own_files(ds: str | None, config_file: str | None) -> OwnFiles:
    """Read what was named. Raises RecipeError with the findings of both files at once."""
    problems: list[Problem] = []
    yaml = _tried(partial(read_file, find_config(config_file)), problems) if config_file else None
    named = [name for name in (ds, yaml.ds_file if yaml else None) if name]
    jsons = [_tried(partial(read_ds_file, find_config(name)), problems) for name in named]
    if problems:
        raise RecipeError(problems)
    return _together(yaml, [each for each in jsons if each is not None])


def _tried(read: Callable[[], T], problems: list[Problem]) -> T | None:
    try:
        return read()
    except RecipeError as error:
        problems += error.problems
    return None


def _together(yaml: AccelerateFile | None, jsons: Sequence[DsFile]) -> OwnFiles:
    by_json = jsons[0] if jsons else None
    if len(jsons) == 2 and jsons[0].config != jsons[1].config:
        raise _two(f"two JSONs: {jsons[0].path} and {jsons[1].path}", str(jsons[0].path))
    if yaml and by_json and yaml.backend not in (None, by_json.backend):
        raise _two(f"{yaml.path} is for {yaml.backend}, {by_json.path} for {by_json.backend}", str(yaml.path))
    backend = by_json.backend if by_json else yaml.backend if yaml else None
    if backend is not None:
        BACKENDS.get(backend, str(by_json.path if by_json else yaml.path if yaml else ""))
    notices = [*(yaml.notices if yaml else ()), *(by_json.notices if by_json else ())]
    return OwnFiles(
        backend=backend,
        num_processes=yaml.num_processes if yaml else None,
        ds=by_json,
        mixed_precision=yaml.mixed_precision if yaml else None,
        settings=yaml.settings if yaml else {},
        notices=tuple(notices),
    )


def _two(what: str, where: str) -> Conflict:
    return Conflict(
        Problem(
            where=where, what=what, right="one file that decides the backend", type="--ds or --config_file"
        )
    )


def agree(arguments: RunArguments, files: OwnFiles, num_processes: int) -> Started:
    """The recipe with what only the files say. Raises Conflict, one table, where they contradict it."""
    starter = Starter(
        name="accelerate",
        world_size=num_processes,
        local_world_size=num_processes,
        backend=files.backend,
        config_file=str(files.ds.path) if files.ds else None,
        mixed_precision=files.mixed_precision,
        settings=files.settings,
    )
    started = resolve_started(arguments, starter)
    if files.ds:
        training = started.loaded.recipe.training
        asked = training.per_device_train_batch_size
        micro = DEFAULT_MICRO_BATCH if asked == "auto" else asked
        step = solve(training.global_batch_size, micro, num_processes)
        require_batch(str(files.ds.path), files.ds.config, step)
    return started

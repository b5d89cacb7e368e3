"""`launcher run RECIPE`: check everything, start accelerate, torchrun or deepspeed, watch it to its end."""

import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from launcher.backends.disk import require_usable
from launcher.backends.options import BACKENDS
from launcher.cli._recipe_words import num_cards, recipe_named
from launcher.errors import Conflict, Problem
from launcher.facts import RunArguments
from launcher.hardware.limits import cores
from launcher.hardware.ports import free_port
from launcher.plan.write import COMMAND_VARIABLE
from launcher.process.after_run import OPTIONS as AFTER_OPTIONS
from launcher.process.after_run import USAGE as AFTER_USAGE
from launcher.process.after_run import read_after_run
from launcher.process.arguments import WITH_VALUE, Grammar, Reader, run_arguments
from launcher.process.around_run import AroundRun, around_run, settle_machine
from launcher.process.command import Chosen, Command, Start, choose_starter, starter_command
from launcher.process.detach import detach, require_folder, without_detach
from launcher.process.gpus import peer_environment, visible_gpus
from launcher.process.on_platform import require_card
from launcher.process.own_files import OwnFiles, agree, read_own_files
from launcher.process.prepare import put_bin_first, require_cards, require_ready
from launcher.process.restarts import OPTIONS as WATCH_OPTIONS
from launcher.process.restarts import USAGE as WATCH_USAGE
from launcher.process.restarts import read_hang_timeout, read_restarts, supervise_again
from launcher.recipe.batch import solve
from launcher.recipe.load import LoadedRecipe, load_recipe
from launcher.redact import redact

_BY_HAND = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, kill; a terminal that was closed sends SIGHUP
SUMMARY = "start a recipe on its backend, and watch it to its end"
USAGE = f"""usage: launcher run RECIPE [--backend NAME | --ds FILE | --config_file FILE] [--gpus N]
                    [--name NAME] [--starter NAME] [--resume [auto|PATH] | --new]
                    [--output_dir DIR] [--quiet] [--dry-run] [key=value ...]
                    [--restarts N] [--hang_timeout SECONDS] [--detach]
                    [--then shutdown [--then_on WHEN] [--grace SECONDS]] [--copy_to DIR] [--notify]

--gpus N       processes, one a card (the recipe's hardware.gpus)
--ds FILE      one's own DeepSpeed JSON; --config_file FILE: one's own Accelerate YAML
--quiet        no bar and no line a step: tracking.progress=quiet
--dry-run      print the starter's command line and stop
--starter NAME accelerate, torchrun, deepspeed or python instead of the backend's preferred one

{WATCH_USAGE}

{AFTER_USAGE}"""


GRAMMAR = Grammar(
    with_value=(*WITH_VALUE, "gpus", "starter", "config_file", *WATCH_OPTIONS, *AFTER_OPTIONS),
    flags=("new", "dry_run", "detach", "notify"),
    names_recipe=True,
    usage=USAGE,
)


def run(reader: Reader) -> int:
    """Start the run and return its own exit code, whatever the starter made of it."""
    is_dry = "dry_run" in reader.flags
    asked = read_after_run(reader.options, reader.flags)
    restarts = read_restarts(reader.options.get("restarts"))
    os.environ.update(read_hang_timeout(reader.options.get("hang_timeout")))
    is_only_checked = is_dry or "detach" in reader.flags
    settle_machine(os.environ, dry=is_only_checked)
    loaded, command = build(reader, os.environ)
    around = around_run(loaded, run_arguments(reader), asked)
    if "detach" in reader.flags and not is_dry:
        require_folder(run_arguments(reader), around.loaded.recipe, around.folder)
        detached = detach(without_detach(reader.typed), around.folder, os.environ)
        print("\n".join(detached.lines()))
        return 0
    around.show(dry=is_dry)
    if is_dry:
        print(command.typed())
        return 0
    return _start(command, reader.typed, around, restarts)


def build(reader: Reader, environ: Mapping[str, str]) -> tuple[LoadedRecipe, Command]:
    """Recipe and command for what was typed, after every check without torch. Raises LauncherError."""
    arguments = run_arguments(reader)
    recipe_named(reader, example="launcher run quickstart")
    files = read_own_files(arguments.ds, reader.options.get("config_file"))
    for notice in files.notices:
        print(notice, file=sys.stderr)
    loaded, chosen = _choose(arguments, files, num_cards(reader), reader.options.get("config_file"))
    require_card(environ, loaded.recipe.hardware.device, arguments.recipe)
    num_processes = loaded.recipe.hardware.gpus
    cards = visible_gpus(environ) if loaded.recipe.hardware.device != "cpu" else ()
    _check(loaded, num_processes, cards)
    _check_disk(loaded, files, environ)
    starter = choose_starter(chosen.backend, reader.options.get("starter"))
    _fits(starter, num_processes, chosen.config_file)
    start = Start(
        num_processes=num_processes,
        port=free_port(),
        num_threads=max(1, cores().amount // num_processes),
        cards=cards,
        variables=peer_environment(environ, cards[:num_processes]),
    )
    return loaded, starter_command(chosen, starter=starter, start=start, words=rank_words(arguments))


def rank_words(arguments: RunArguments) -> list[str]:
    """What stands behind run.py: the recipe (a file by its path from here) and what was typed for it."""
    words = ["--recipe", arguments.recipe]
    words += ["--name", arguments.name] if arguments.name else []
    words += ["--output_dir", arguments.output_dir] if arguments.output_dir else []
    words += ["--resume", arguments.resume] if arguments.resume else []
    words += ["--new"] if arguments.new else []
    return [*words, *arguments.overrides]


def _choose(
    arguments: RunArguments, files: OwnFiles, num_processes: int | None, config_file: str | None
) -> tuple[LoadedRecipe, Chosen]:
    """Load the recipe with what command line and files decide about backend and cards."""
    count = num_processes or files.num_processes
    extra: dict[str, object] = {} if count is None else {"hardware.gpus": count}
    named = _named_backend(arguments, files)
    if named is not None:
        extra["backend.name"] = named
    loaded = load_recipe(arguments.recipe, arguments.overrides, extra=extra)
    if files != OwnFiles():
        loaded = agree(arguments, files, loaded.recipe.hardware.gpus).loaded
    options = loaded.recipe.backend
    backend = BACKENDS.get(options.name)
    own = options != backend.options(name=options.name)
    chosen = Chosen(backend=backend, ds=arguments.ds, config_file=config_file, has_own_options=own)
    return loaded, chosen


def _named_backend(arguments: RunArguments, files: OwnFiles) -> str | None:
    named = BACKENDS.get(arguments.backend, "--backend").name if arguments.backend else None
    if files.backend and named and files.backend != named:
        option = f"--ds {arguments.ds}" if arguments.ds else "--config_file FILE"
        raise Conflict(
            Problem(
                where=arguments.ds or "--config_file",
                what=f"the file is for {files.backend}, --backend says {named}",
                right="one of the two",
                type=option,
            )
        )
    return files.backend or named


def _check(loaded: LoadedRecipe, num_processes: int, cards: tuple[str, ...]) -> None:
    """Before anything starts: data, model and cards that there are, and the batch on so many ranks."""
    require_ready(loaded, cards)
    require_cards(loaded, num_processes, len(cards))
    training = loaded.recipe.training
    asked = training.per_device_train_batch_size
    solve(training.global_batch_size, None if asked == "auto" else asked, num_processes)


def _check_disk(loaded: LoadedRecipe, files: OwnFiles, environ: Mapping[str, str]) -> None:
    """What ZeRO-Infinity needs of this machine, before ranks find out one by one."""
    options = loaded.recipe.backend
    render = BACKENDS.get(options.name).ds_config
    rendered = render(options) if render else {}
    require_usable(files.ds.config if files.ds else rendered, environ)


def _fits(starter: str, num_processes: int, config_file: str | None) -> None:
    """Raise Conflict for a starter that cannot do what else was typed."""
    if config_file is not None and starter != "accelerate":
        raise Conflict(
            Problem(
                where=f"--starter {starter}",
                what=f"{config_file} is Accelerate's file, {starter} does not read it",
                right="accelerate with its file, or another starter with --ds or --backend",
                type="--starter accelerate",
            )
        )
    if starter == "python" and num_processes > 1:
        raise Conflict(
            Problem(
                where="--starter python",
                what=f"python starts one process, {num_processes} were asked for",
                right="accelerate, torchrun or deepspeed start several",
                type="--gpus 1",
            )
        )


def _start(command: Command, words: Sequence[str], around: AroundRun, restarts: int) -> int:
    typed = command.typed()
    print(redact(typed), file=sys.stderr, flush=True)
    environ = {**os.environ, COMMAND_VARIABLE: f"{shlex.join(['launcher', 'run', *words])}\n{typed}"}
    put_bin_first(environ)
    outcome = supervise_again(command, environ, folder=around.folder, most=restarts, say=_say)
    if outcome.exit_code:
        _say(outcome.words)
    if outcome.killed:
        _say(f"had to kill {', '.join(map(str, outcome.killed))}")
    around.follow(outcome.exit_code, outcome.words, by_hand=outcome.stopped_by in _BY_HAND)
    return outcome.exit_code


def _say(text: str) -> None:
    with suppress(OSError):  # the terminal was closed: what is left to do is done all the same
        print(f"launcher run: {text}", file=sys.stderr, flush=True)

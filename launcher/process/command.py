"""The command line that starts a run, built as a list: which starter, how many processes, which port.

It names the shipped configuration files, so that a person can type the same line, and nothing has
to be written before the run has claimed its folder. Pure: no process, no port is touched here.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from launcher.backends.options import Backend
from launcher.errors import BadValue, Problem
from launcher.process.config_files import PACKAGE, find_config

_PORT_OPTIONS = ("--main_process_port", "--master_port")


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is started: the words, variables beside the inherited ones, files to keep a copy of.

    `num_ranks` is 0 where nobody knows.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    files: dict[str, str]
    num_ranks: int = 0

    def typed(self) -> str:
        """One line as a person would type it in this directory."""
        variables = [f"{key}={shlex.quote(value)}" for key, value in sorted(self.environment.items())]
        return " ".join([*variables, *(shlex.quote(_as_typed(word)) for word in self.argv)])


@dataclass(frozen=True, kw_only=True)
class Start:
    """How many processes meet where: `cards` are CUDA ids for the deepspeed starter, () on CPU.

    `variables` are what these cards need in the ranks' environment.
    """

    num_processes: int
    port: int
    num_threads: int
    cards: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The backend to start; `ds` and `config_file` are one's own JSON and Accelerate YAML.

    `has_own_options`: more than the shipped files say.
    """

    backend: Backend
    ds: str | None = None
    config_file: str | None = None
    has_own_options: bool = False

    @property
    def is_shipped(self) -> bool:
        """Whether the backend's shipped files say all that the ranks must know."""
        return self.ds is None and self.config_file is None and not self.has_own_options


def choose_starter(backend: Backend, asked: str | None) -> str:
    """The asked starter, or the backend's preferred one. Raises BadValue for one that cannot start it."""
    if asked is None:
        return backend.starters[0]
    if asked in backend.starters:
        return asked
    raise BadValue(
        Problem(
            where="--starter",
            what=f"{asked} does not start {backend.name}",
            right=f"one of: {', '.join(backend.starters)}",
            type=f"--starter {backend.starters[0]}",
        )
    )


def starter_command(chosen: Chosen, *, starter: str, start: Start, words: Sequence[str]) -> Command:
    """The whole command. `words` stand behind run.py: the recipe and what was typed for it."""
    head, tail = _STARTERS[starter](chosen, start)
    files = {}
    if starter == "accelerate":
        files["accelerate.yaml"] = _accelerate_file(chosen).read_text(encoding="utf-8")
    return Command(
        argv=(*head, str(PACKAGE / "run.py"), *tail, *words),
        environment={"OMP_NUM_THREADS": str(start.num_threads), **start.variables},
        files=files,
        num_ranks=start.num_processes,
    )


def on_port(command: Command, port: int) -> Command:
    """The same command meeting on another port: the old one may still be in use."""
    argv = list(command.argv)
    for index, word in enumerate(argv[:-1]):
        if word in _PORT_OPTIONS:
            argv[index + 1] = str(port)
    return replace(command, argv=tuple(argv))


def tool(name: str, module: str) -> list[str]:
    """A starter installed beside this Python, or the module that it runs."""
    beside = Path(sys.executable).parent / name
    return [str(beside)] if os.access(beside, os.X_OK) else [sys.executable, "-m", module]


def _accelerate_file(chosen: Chosen) -> Path:
    """A JSON of one's own stands behind run.py: the backend's YAML would name the shipped one beside it."""
    if chosen.config_file is not None:
        return find_config(chosen.config_file)
    is_plain = chosen.is_shipped or chosen.backend.ds_config is None
    return find_config(f"accelerate_configs/{chosen.backend.name if is_plain else 'multi_gpu'}.yaml")


def _accelerate(chosen: Chosen, start: Start) -> tuple[list[str], list[str]]:
    """Never without --config_file: a default one in the person's home would be read instead."""
    head = [*tool("accelerate", "accelerate.commands.accelerate_cli"), "launch"]
    head += ["--config_file", str(_accelerate_file(chosen)), "--num_processes", str(start.num_processes)]
    if chosen.backend.max_ranks != 1:
        head += ["--main_process_port", str(start.port)]
    is_one_of_many = chosen.backend.name == "multi_gpu" and start.num_processes == 1
    is_said = chosen.is_shipped or chosen.config_file is not None
    return head, _backend_words(chosen, is_implied=is_said and not is_one_of_many)


def _torchrun(chosen: Chosen, start: Start) -> tuple[list[str], list[str]]:
    """As a module: an environment that borrows its torch has no torchrun of its own."""
    head = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(start.num_processes)]
    head += ["--master_port", str(start.port)]
    is_plain = chosen.backend.name == "multi_gpu" and start.num_processes > 1
    return head, _backend_words(chosen, is_implied=is_plain)


def _deepspeed(chosen: Chosen, start: Start) -> tuple[list[str], list[str]]:
    """Cards by id where there are any: --num_gpus would overrule CUDA_VISIBLE_DEVICES in silence."""
    head = [*tool("deepspeed", "deepspeed.launcher.runner"), "--master_port", str(start.port)]
    if start.cards:
        head += ["--include", "localhost:" + ",".join(start.cards[: start.num_processes])]
    else:
        head += ["--num_gpus", str(start.num_processes)]
    if chosen.is_shipped:
        return head, ["--ds", str(find_config(f"ds_configs/{chosen.backend.name}.json"))]
    return head, _backend_words(chosen, is_implied=False)


def _python(chosen: Chosen, start: Start) -> tuple[list[str], list[str]]:
    return [sys.executable], _backend_words(chosen, is_implied=False)


def _backend_words(chosen: Chosen, *, is_implied: bool) -> list[str]:
    """What the ranks cannot see from their starter."""
    if chosen.ds is not None:
        return ["--ds", str(find_config(chosen.ds))]
    return [] if is_implied else ["--backend", chosen.backend.name]


_STARTERS = {"accelerate": _accelerate, "torchrun": _torchrun, "deepspeed": _deepspeed, "python": _python}


def _as_typed(word: str) -> str:
    """A program by its name where the shell would find the same one, a path as seen from here."""
    path = Path(word)
    if not path.is_absolute():
        return word
    if os.access(path, os.X_OK) and path.is_file() and shutil.which(path.name) == word:
        return path.name
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else word

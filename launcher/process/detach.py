"""`launcher run --detach`: the run in a session of its own, its output in a file of the run folder."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import BadValue, Problem
from launcher.facts import RunArguments
from launcher.process.rank_process import refuse_world_writing
from launcher.recipe.schema import Recipe
from launcher.train.folder import LOG_VARIABLE, claim

_ROOT = Path(__file__).resolve().parents[2]
# The package from where this one was imported, whatever the working directory holds.
_START = (
    "import sys; sys.path[:] = [p for p in sys.path if p] + [sys.argv.pop(1)]; "
    "from launcher.cli.main import main; sys.exit(main(sys.argv[1:]))"
)


@dataclass(frozen=True, kw_only=True)
class Detached:
    """The process that supervises the run, and its log."""

    pid: int
    log: Path

    def lines(self) -> list[str]:
        """What to tell: how to watch, how to stop."""
        log = shlex.quote(str(self.log))
        return [
            f"runs in the background as process {self.pid}; closing this terminal does not end it",
            f"watch: tail -f {log}",
            f"stop:  kill {self.pid}   (saves a checkpoint first; --resume continues)",
        ]


def without_detach(words: Sequence[str]) -> list[str]:
    """The words that the background process is given."""
    return [word for word in words if word != "--detach"]


def require_folder(arguments: RunArguments, recipe: Recipe, folder: Path) -> None:
    """Refuse a folder that the first rank would refuse, while somebody still looks. Raises Conflict."""
    asked = arguments.resume or recipe.training.resume_from_checkpoint
    if asked is None and not arguments.new and folder.is_dir():
        claim(folder, resume=None, new=False)


def detach(words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> Detached:
    """Start `launcher run` with these words, away from this terminal. Raises BadValue without a log."""
    refuse_world_writing()
    log = folder / f"run-{time.strftime('%Y%m%d-%H%M%S')}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise BadValue(
            Problem(
                where=str(log),
                what=f"the log cannot be written: {error.strerror}",
                right="a run folder that you may write to",
                type="--output_dir DIR",
            )
        ) from error
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(_ROOT), "run", *words],
            env={**environ, LOG_VARIABLE: str(log), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    return Detached(pid=process.pid, log=log)

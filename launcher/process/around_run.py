"""What `launcher run` does around a run: the rented machine's ways before it, what was asked for after it."""

import os
import sys
from collections.abc import Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launcher.facts import RunArguments
from launcher.plan.room_by_mount import require_rooms
from launcher.process.after_run import AfterRun, Ended, announce, follow
from launcher.process.board import show_run
from launcher.process.on_platform import settle_platform
from launcher.recipe.load import LoadedRecipe
from launcher.redact import redact


@dataclass(frozen=True, kw_only=True)
class AroundRun:
    """One run's surroundings, settled: its recipe, its folder, what follows it."""

    loaded: LoadedRecipe
    folder: Path
    asked: AfterRun

    def show(self, *, dry: bool) -> None:
        """Disks, what follows, and where the curves are; `dry` links nothing. Raises LauncherError."""
        recipe = self.loaded.recipe
        root = recipe.model_copy(update={"output_dir": str(self.folder.parent)})
        _say(require_rooms(root, self.folder.name))
        _say(announce(self.asked, self.folder, os.environ, dry=dry))
        if "tensorboard" in recipe.tracking.report_to and not dry:
            _say(show_run(self.folder))

    def follow(self, exit_code: int, words: str, *, by_hand: bool) -> None:
        """What was asked for after the run; never changes its exit code."""
        ended = Ended(folder=self.folder, exit_code=exit_code, words=words, by_hand=by_hand)
        follow(self.asked, ended, os.environ, lambda line: _say([line]))


def settle_machine(environ: MutableMapping[str, str], *, dry: bool) -> None:
    """A rented machine's variables, told in lines. Raises HardwareError."""
    _say(settle_platform(environ, dry=dry))


def around_run(loaded: LoadedRecipe, arguments: RunArguments, asked: AfterRun) -> AroundRun:
    """What stands around this run; its folder is the one that its ranks will claim."""
    place = Path(arguments.output_dir or loaded.recipe.output_dir).expanduser()
    return AroundRun(loaded=loaded, folder=place / (arguments.name or loaded.name), asked=asked)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        with suppress(OSError):  # the terminal was closed
            print(redact(line), file=sys.stderr, flush=True)

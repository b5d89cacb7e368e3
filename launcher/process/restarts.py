"""Bounded restarts of a run that was lost: by `launcher run --restarts N`, or by a starter's --max_restarts.

Nothing is restarted that a person ended, nor a mistake, nor numbers that are not finite. A restarted rank
continues by itself from the newest whole checkpoint of its own run.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.errors import BadValue, Problem
from launcher.facts import RunArguments
from launcher.hardware.ports import free_port
from launcher.heartbeat import TIMEOUT_VARIABLE
from launcher.plan.resume_file import NAME as RESUME_FILE
from launcher.plan.run_id import RUN_VARIABLE, is_taken_by, run_id
from launcher.process.command import Command, on_port
from launcher.process.supervise import Outcome, supervise
from launcher.recipe.load import load_recipe
from launcher.train.checkpoint_files import newest_whole

OPTIONS = ("restarts", "hang_timeout")
USAGE = """--restarts N     start again from the last whole checkpoint, at most N times: after a lost or hung
                 rank, or memory that ran out; not after Ctrl-C, a mistake, or a loss that is NaN
--hang_timeout S end the run when no rank has moved for S seconds (1800; 0: never)
--detach         in the background, its output in a file of the run folder; a closed terminal ends nothing"""
COUNT_VARIABLE = "LAUNCHER_RESTART_COUNT"
_COUNTS = (COUNT_VARIABLE, "TORCHELASTIC_RESTART_COUNT")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a restart would begin from: the newest whole checkpoint, and what the run noted to change."""

    checkpoint: str
    noted: str

    @classmethod
    def of(cls, folder: Path) -> "Progress":
        """As the run folder says now."""
        whole, _ = newest_whole(folder)
        note = folder / RESUME_FILE
        text = note.read_text(encoding="utf-8", errors="replace") if note.is_file() else ""
        return cls(checkpoint=whole.name if whole else "", noted=text)


def read_restarts(text: str | None) -> int:
    """The number behind `--restarts`. Raises BadValue for anything that is no count."""
    if text is None:
        return 0
    if text.isascii() and text.isdigit():
        return int(text)
    raise BadValue(
        Problem(
            where="--restarts",
            what=f"'{text}' is no number of restarts",
            right="0 or more",
            type="--restarts 3",
        )
    )


def read_hang_timeout(text: str | None) -> dict[str, str]:
    """The variable that `--hang_timeout` stands for. Raises BadValue for anything but seconds."""
    if text is None:
        return {}
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadValue(
            Problem(
                where="--hang_timeout",
                what=f"'{text}' is no number of seconds",
                right="seconds without a sign of life from any rank; 0: never",
                type="--hang_timeout 1800",
            )
        )
    return {TIMEOUT_VARIABLE: f"{seconds:g}"}


def supervise_again(
    command: Command,
    environ: Mapping[str, str],
    *,
    folder: Path,
    most: int,
    say: Callable[[str], object],
    **streams: Any,
) -> Outcome:
    """Supervise, and start again at most so often while the run can be continued and gets further."""
    variables = {**environ, RUN_VARIABLE: uuid.uuid4().hex}
    outcome = supervise(command, variables, **streams)
    before: Progress | None = None
    for count in range(1, most + 1):
        if not outcome.can_restart:
            return outcome
        now = Progress.of(folder)
        if now == before:
            say(f"not started again: no step was gained since the last restart ({outcome.words})")
            return outcome
        before = now
        where = now.checkpoint or "the beginning: there is no whole checkpoint yet"
        say(f"restart {count} of {most}: {outcome.words}. Continues from {where}")
        again = on_port(command, free_port())
        outcome = supervise(again, variables | {COUNT_VARIABLE: str(count)}, **streams)
    if most and outcome.can_restart:
        say(f"not started again: all {most} restarts are used")
    return outcome


def restart_count(environ: Mapping[str, str]) -> int:
    """How often this run was started again; 0 for the first start."""
    found = [environ.get(name, "") for name in _COUNTS]
    return max(int(text) if text.isdigit() else 0 for text in found)


def continued(arguments: RunArguments, environ: Mapping[str, str]) -> RunArguments:
    """The arguments of a restarted rank: it resumes its own run, whatever was typed for the first start.

    Where its run has not begun to write, everything is as it was: a refused folder stays refused.
    """
    if not restart_count(environ):
        return arguments
    recipe = load_recipe(arguments.recipe, arguments.overrides)
    place = Path(arguments.output_dir or recipe.recipe.output_dir).expanduser()
    folder = place / (arguments.name or recipe.name)
    if not is_taken_by(folder, run_id(environ)):
        return arguments
    whole, _ = newest_whole(folder)
    asked = arguments.resume or recipe.recipe.training.resume_from_checkpoint
    if whole is None and asked not in (None, "auto"):  # it had begun from there, and saved nothing yet
        return replace(arguments, new=False, resume=asked)
    return replace(arguments, new=False, resume="auto")

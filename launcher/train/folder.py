"""The run folder: claimed before anything is written, never mixed with another run's files."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.errors import Conflict, Problem, ResumeMismatch
from launcher.train.checkpoint_files import clean, fault, newest_whole, read_manifest, set_aside
from launcher.train.foreign import to_checkpoint
from launcher.train.owner import cannot_write, give_up, own

SUMMARY = "summary.json"
LOG_VARIABLE = "LAUNCHER_LOG"
MODEL = "final"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Where to write, what to continue from, where an earlier run goes, and lines for the person."""

    folder: Path
    checkpoint: Path | None = None
    aside: Path | None = None
    notices: tuple[str, ...] = field(default=())

    def take(self) -> list[str]:
        """Make the folder ready to be written into, and this process's own; lines for the person.

        An earlier run's is renamed, nothing whole is deleted. Raises Conflict where another process was
        faster.
        """
        if self.aside is not None:
            self.folder.rename(self.aside)
            give_up(self.folder)
        is_new = not is_used(self.folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        if self.aside is not None:
            _bring_log(self.aside, self.folder)
        said = [*self.notices, *own(self.folder)]
        if self.checkpoint is None and is_new and is_used(self.folder):
            raise _used(self.folder)
        if left := clean(self.folder):
            said.append(f"removed what a run that was killed had left: {', '.join(left)}")
        if self.checkpoint is not None and self.checkpoint.parent.resolve() == self.folder.resolve():
            aside = set_aside(self.folder, int(read_manifest(self.checkpoint)["step"]))
            said += [f"{name} is of the way that is left now; delete it when you like" for name in aside]
        return said


def _bring_log(aside: Path, folder: Path) -> None:
    """The file that this run's own output goes to (`--detach`) was renamed with the earlier run."""
    log = Path(os.environ.get(LOG_VARIABLE, ""))
    if log.name and (aside / log.name).is_file():
        (aside / log.name).rename(folder / log.name)


def is_used(folder: Path) -> bool:
    """Whether a run has written there."""
    return any((folder / name).exists() for name in ("metrics.jsonl", "plan.json", MODEL))


def claim(folder: Path, *, resume: str | None, new: bool) -> Claim:
    """Decide between a fresh start, a continuation and a refusal. A folder that is there is owned from now.

    `resume`: auto or a checkpoint's path. `new` renames a used folder, it deletes nothing. Raises Conflict
    where another live process owns the folder.
    """
    said = tuple(own(folder)) if is_used(folder) else ()
    if new:
        return _fresh(folder, said)
    if resume is not None:
        return _continue(folder, resume, said)
    if is_used(folder):
        raise _used(folder)
    return Claim(folder=folder)


def _fresh(folder: Path, said: tuple[str, ...]) -> Claim:
    if not is_used(folder):
        return Claim(folder=folder)
    names = (folder.with_name(f"{folder.name}.{number}") for number in range(1, 10**6))
    aside = next(path for path in names if not path.exists())
    kept = f"the earlier run is kept in {aside}; delete it when you do not need it"
    return Claim(folder=folder, aside=aside, notices=(*said, kept))


def _continue(folder: Path, resume: str, said: tuple[str, ...]) -> Claim:
    if resume == "auto":
        found, passed = newest_whole(folder)
        nothing = () if found else (f"no whole checkpoint in {folder}: starting from the beginning",)
        return Claim(folder=folder, checkpoint=found, notices=(*said, *passed, *nothing))
    checkpoint = to_checkpoint(Path(resume).expanduser())
    if (reason := fault(checkpoint)) is not None:
        raise ResumeMismatch(
            Problem(
                where=str(checkpoint),
                what=f"this checkpoint is not whole: {reason}",
                right="a checkpoint whose files have the sizes and hashes of its manifest",
                type="--resume auto",
            )
        )
    if is_used(folder) and checkpoint.parent.resolve() != folder.resolve():
        raise Conflict(
            Problem(
                where=str(folder),
                what=f"this folder holds a run of its own; {checkpoint} is another run's",
                right="an unused folder for what goes on from another run's checkpoint",
                type=f"--name OTHER --resume {checkpoint}",
            )
        )
    return Claim(folder=folder, checkpoint=checkpoint, notices=said)


def is_finished(place: Claim, *, total_steps: int, patience: int | None) -> bool:
    """Whether the run in that folder has come to the end that the recipe asks for.

    Raises ResumeMismatch where it ended earlier and left no checkpoint to go on from.
    """
    facts = _facts(place.folder)
    if facts is None or not (place.folder / SUMMARY).is_file():
        return False
    ended_early = bool(facts.get("stopped_early")) and patience is not None
    if facts["steps"] >= total_steps or ended_early:
        return True
    if place.checkpoint is None:
        raise ResumeMismatch(
            Problem(
                where=str(place.folder),
                what=f"this run ended after {facts['steps']} steps; to go on to {total_steps} it has no "
                f"whole checkpoint{_passed(place)}",
                right="a whole checkpoint (save_steps=N), or a new run",
                type="--new (the finished run is kept beside it)",
            )
        )
    return False


def _passed(place: Claim) -> str:
    """Why those that are there were passed over."""
    return f" ({'; '.join(place.notices)})" if place.notices else ""


def _facts(folder: Path) -> dict[str, Any] | None:
    path = folder / MODEL / "launcher.json"
    try:
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return facts if isinstance(facts.get("steps"), int) else None


def _used(folder: Path) -> Conflict:
    whole, _ = newest_whole(folder)
    held = f"its newest whole checkpoint is {whole.name}" if whole else "it has no whole checkpoint"
    return Conflict(
        Problem(
            where=str(folder),
            what=f"this folder holds a run already; {held}",
            right="--resume continues it; --new starts over beside it; --name NAME uses another folder",
            type="--resume" if whole else "--new",
        )
    )

"""The run folder: claimed before anything is written, never mixed with another run's files."""

from dataclasses import dataclass
from pathlib import Path

from launcher.errors import BadValue, Conflict, Problem, ResumeMismatch
from launcher.train.checkpoint import MANIFEST, fault, newest_whole

SUMMARY = "summary.json"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Where to write, what to continue from, where an earlier run goes, and lines for the person."""

    folder: Path
    checkpoint: Path | None = None
    aside: Path | None = None
    notices: tuple[str, ...] = ()

    def take(self) -> None:
        """Make the folder ready to be written into; an earlier run's is renamed, nothing is deleted."""
        if self.aside is not None:
            self.folder.rename(self.aside)
        self.folder.mkdir(parents=True, exist_ok=True)


def is_used(folder: Path) -> bool:
    """Whether a run has written there."""
    return any((folder / name).exists() for name in ("metrics.jsonl", "plan.json", "final"))


def claim(folder: Path, *, resume: str | None, new: bool) -> Claim:
    """Decide between a fresh start, a continuation and a refusal; writes nothing.

    `resume`: auto or a checkpoint's path. `new` renames a used folder, it deletes nothing.
    """
    if new:
        return _fresh(folder)
    if resume is not None:
        return _continue(folder, resume)
    if is_used(folder):
        raise _used(folder)
    return Claim(folder=folder)


def _fresh(folder: Path) -> Claim:
    if not is_used(folder):
        return Claim(folder=folder)
    names = (folder.with_name(f"{folder.name}.{number}") for number in range(1, 10**6))
    aside = next(path for path in names if not path.exists())
    kept = f"the earlier run is kept in {aside}; delete it when you do not need it"
    return Claim(folder=folder, aside=aside, notices=(kept,))


def _continue(folder: Path, resume: str) -> Claim:
    if resume == "auto":
        found, passed = newest_whole(folder)
        said = () if found else (f"no whole checkpoint in {folder}: starting from the beginning",)
        return Claim(folder=folder, checkpoint=found, notices=(*passed, *said))
    checkpoint = Path(resume).expanduser()
    if not (checkpoint / MANIFEST).is_file():
        raise BadValue(
            Problem(
                where="resume_from_checkpoint",
                what=f"{checkpoint} is no checkpoint: it has no {MANIFEST}",
                right="a checkpoint-N folder of a run, or auto for the newest whole one",
                type="--resume auto",
            )
        )
    if (reason := fault(checkpoint)) is not None:
        raise ResumeMismatch(
            Problem(
                where=str(checkpoint),
                what=f"this checkpoint is not whole: {reason}",
                right="a checkpoint whose files have the sizes and hashes of its manifest",
                type="--resume auto",
            )
        )
    return Claim(folder=folder, checkpoint=checkpoint)


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

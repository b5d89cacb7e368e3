"""The run folder: claimed before anything is written, never mixed with another run's files."""

import json
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import BadValue, Conflict, Problem, ResumeMismatch
from launcher.train.checkpoint import MANIFEST, fault, newest_whole

SUMMARY = "summary.json"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Where to write, what to continue from, and lines for the person."""

    folder: Path
    checkpoint: Path | None
    notices: tuple[str, ...]


def is_used(folder: Path) -> bool:
    """Whether a run has written there."""
    return any((folder / name).exists() for name in ("metrics.jsonl", "plan.json", "final"))


def claim(folder: Path, *, resume: str | None, new: bool) -> Claim:
    """Decide between a fresh start, a continuation and a refusal; creates the folder, writes nothing else.

    `resume`: auto or a checkpoint's path. `new` renames a used folder, it deletes nothing.
    """
    if new:
        return _fresh(folder)
    if resume is not None:
        return _continue(folder, resume)
    if is_used(folder):
        raise _used(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return Claim(folder=folder, checkpoint=None, notices=())


def _fresh(folder: Path) -> Claim:
    notices: tuple[str, ...] = ()
    if is_used(folder):
        aside = next(
            path for n in range(1, 10**6) if not (path := folder.with_name(f"{folder.name}.{n}")).exists()
        )
        folder.rename(aside)
        notices = (f"the earlier run is kept in {aside}; delete it when you do not need it",)
    folder.mkdir(parents=True, exist_ok=True)
    return Claim(folder=folder, checkpoint=None, notices=notices)


def _continue(folder: Path, resume: str) -> Claim:
    if resume == "auto":
        found, passed = newest_whole(folder)
        folder.mkdir(parents=True, exist_ok=True)
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
    folder.mkdir(parents=True, exist_ok=True)
    return Claim(folder=folder, checkpoint=checkpoint, notices=())


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


def write_json(path: Path, content: object) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)

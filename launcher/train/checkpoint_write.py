"""Writes one checkpoint with all ranks: whole under its name at the end, or not at all and everybody knows.

Nothing here raises for a disk's sake. A rank whose disk fails goes on taking part in what the others wait
for, then all ranks learn of it in the same exchange, the half folder goes, and training continues.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from launcher.train.checkpoint_files import (
    LOOP,
    MANIFEST,
    WRITING,
    entry,
    place_of,
    put_in_place,
    sync_folder,
    write_text,
)
from launcher.train.save_failure import Failure, failure_of, require_room
from launcher.train.shard_file import write_shard
from launcher.train.world import World

T = TypeVar("T")
README = """Training state for resuming: do not delete single files, the run checks them all.
Do not delete this folder before the run is finished: it is needed for --resume and for the export.
"""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a checkpoint holds beside its tensors: texts by file name, and its manifest without files."""

    step: int
    texts: Mapping[str, str]
    manifest: Mapping[str, Any]
    needed_bytes: int


class Writing:
    """One checkpoint on its way; every rank makes one and calls `run`."""

    def __init__(self, folder: Path, world: World, contents: Contents) -> None:
        """`folder` is the run's; `world` is only used to exchange small facts."""
        self.folder, self.world, self.contents = folder, world, contents
        self.final = place_of(folder, contents.step)
        self.temporary = folder / f"{WRITING}{self.final.name}"

    def run(self, shards: Iterable[Mapping[str, Tensor]]) -> Failure | None:
        """Write this rank's shards and, on the first rank, the rest; None once the checkpoint is whole.

        `shards` is always read to its end: making them may be work that ranks do together.
        """
        failure = self._together(self._begin if self.world.is_first else None)
        entries, mine = self._write(shards, skip=failure is not None)
        exchanged = self.world.gather((mine, entries))
        failure = failure or next((each for each, _ in exchanged if each is not None), None)
        if failure is None:
            files = {name: written for _, part in exchanged for name, written in part.items()}
            failure = self._together((lambda: self._finish(files)) if self.world.is_first else None)
        if failure is not None and self.world.is_first:
            shutil.rmtree(self.temporary, ignore_errors=True)
        return failure

    def _together(self, work: Callable[[], None] | None) -> Failure | None:
        """Do work where there is some; the first failure of any rank, on every rank."""
        mine = None
        if work is not None:
            try:
                work()
            except Exception as error:
                mine = self.failure(error)
        return next((each for each in self.world.gather(mine) if each is not None), None)

    def failure(self, error: Exception) -> Failure:
        """The failure of this save that an exception on this rank stands for."""
        return failure_of(
            error,
            name=self.final.name,
            folder=self.folder,
            needed_bytes=self.contents.needed_bytes,
            rank=self.world.rank,
        )

    def _begin(self) -> None:
        shutil.rmtree(self.temporary, ignore_errors=True)
        require_room(self.folder, self.contents.needed_bytes)
        self.temporary.mkdir(parents=True)

    def _write(
        self, shards: Iterable[Mapping[str, Tensor]], *, skip: bool
    ) -> tuple[dict[str, Any], Failure | None]:
        entries: dict[str, Any] = {}
        failure: Failure | None = None
        for number, held in enumerate(shards):
            if skip or failure is not None:
                continue
            name = f"state-{self.world.rank:04d}-{number:04d}.safetensors"
            try:
                entries[name] = write_shard(self.temporary / name, held)
            except Exception as error:
                failure = self.failure(error)
        return entries, failure

    def _finish(self, files: dict[str, Any]) -> None:
        """Texts, then the manifest with every file's size and hash, then the name."""
        for name, text in self.contents.texts.items():
            write_text(self.temporary / name, text)
            files[name] = entry(self.temporary / name)
        manifest = {**self.contents.manifest, "files": files}
        write_text(self.temporary / MANIFEST, json.dumps(manifest, indent=2))
        sync_folder(self.temporary)
        put_in_place(self.temporary, self.final)


def texts(loop_state: Mapping[str, Any]) -> dict[str, str]:
    """The texts of every checkpoint."""
    return {LOOP: json.dumps(loop_state, indent=2), "README": README}

"""Room for everything a run brings and writes, disk by disk, asked before anything starts. No torch.

Downloads, prepared tokens and the run's own files may lie on one disk or on three: each disk is asked for the
sum of what goes there. What cannot be predicted is said, never guessed at silently.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launcher.data.cache_place import cache_root
from launcher.data.place import kind_of
from launcher.data.spool import HELD_BYTES
from launcher.errors import DoesNotFit, Problem
from launcher.hardware.mounts import Room, Statvfs, biggest_folder, mount_of, mount_points, room_at
from launcher.hardware.platform_facts import find_platform
from launcher.memory.disk import disk
from launcher.memory.of_recipe import setting_of
from launcher.models.download import cache_folder
from launcher.models.source import is_hub_id
from launcher.plan.known_shape import known_shape
from launcher.recipe.schema import Recipe
from launcher.units import format_bytes

_STORED_BYTES = 2  # hubs keep weights in 16 bits nowadays; an fp32 file is twice that
_TOKEN_BYTES = 2.0  # a byte of text: about a quarter of a token, four bytes each, with offsets and labels


@dataclass(frozen=True, kw_only=True)
class Need:
    """What goes where: bytes still to be written, and the variable or key that moves it elsewhere."""

    name: str
    place: Path
    num_bytes: int
    moved_by: str


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A disk, what is to go there, and what it has."""

    room: Room
    needs: tuple[Need, ...] = field(default=())

    @property
    def num_bytes(self) -> int:
        """Everything that goes to this disk."""
        return sum(need.num_bytes for need in self.needs)


def needs_of(recipe: Recipe, name: str, environ: Mapping[str, str] = os.environ) -> list[Need]:
    """Downloads, tokens and the run's files, as far as they can be predicted without a network."""
    return [*_download(recipe), *_tokens(recipe, environ), *_written(recipe, name)]


def _download(recipe: Recipe) -> Iterator[Need]:
    """A hub model that is not in the cache: its parameters in 16 bits."""
    folder, shape = cache_folder(recipe.model.model_name_or_path), known_shape(recipe)
    if shape is None or not is_hub_id(recipe.model):
        return
    missing = _STORED_BYTES * shape.num_params - _held(folder)
    if missing > 0:
        yield Need(name="the model's download", place=folder, num_bytes=missing, moved_by="HF_HOME")


def _tokens(recipe: Recipe, environ: Mapping[str, str]) -> Iterator[Need]:
    paths = [Path(text) for text in (recipe.data.train_file, recipe.data.eval_file) if text]
    size = sum(path.stat().st_size for path in paths if kind_of(path) == "file" and path.is_file())
    needs = {"prepared tokens": int(_TOKEN_BYTES * size)}
    if size > HELD_BYTES:
        needs["rows while they are prepared"] = int((1 + _TOKEN_BYTES) * size)
    for name, num_bytes in needs.items() if size else ():
        yield Need(name=name, place=cache_root(environ), num_bytes=num_bytes, moved_by="LAUNCHER_CACHE")


def _written(recipe: Recipe, name: str) -> Iterator[Need]:
    """Checkpoints and the final model, less what an earlier start of this run has written already."""
    folder, shape = Path(recipe.output_dir).expanduser() / name, known_shape(recipe)
    if shape is None:
        return
    setting = setting_of(
        recipe,
        shape,
        backend=recipe.backend.name,
        num_ranks=1,
        micro_batch=1,
        precision="bf16",
        weights_dtype="bfloat16",
    )
    for term in disk(setting, recipe.training):
        place = Path(getattr(recipe.backend, "nvme_path", folder)) if "offload" in term.name else folder
        yield Need(name=term.name, place=place, num_bytes=term.num_bytes, moved_by="output_dir")


def _held(folder: Path) -> int:
    """Bytes below a folder that may not be there; links are not counted twice."""
    paths = (path for path in folder.rglob("*") if not path.is_symlink() and path.is_file())
    return sum(path.stat().st_size for path in paths)


def by_disk(
    needs: Iterable[Need], mounts: list[Path] | None = None, statvfs: Statvfs = os.statvfs
) -> list[Shortage]:
    """Every disk with what goes there, in the order of mount points."""
    known = mount_points() if mounts is None else mounts
    together: dict[Path, list[Need]] = {}
    for need in needs:
        together.setdefault(mount_of(need.place, known), []).append(need)
    return [
        Shortage(room=room_at(mount, statvfs), needs=tuple(together[mount])) for mount in sorted(together)
    ]


def require_rooms(
    recipe: Recipe,
    name: str,
    environ: Mapping[str, str] = os.environ,
    *,
    mounts: list[Path] | None = None,
    statvfs: Statvfs = os.statvfs,
) -> list[str]:
    """A line a disk. Raises DoesNotFit, one finding for each disk that is too small."""
    disks = by_disk(needs_of(recipe, name, environ), mounts, statvfs)
    already = _held(Path(recipe.output_dir).expanduser() / name)
    short = [each for each in disks if each.num_bytes > each.room.free_bytes + already]
    full = [each for each in disks if each not in short and each.room.free_files == 0]
    if problems := [*(_too_small(each, disks, environ) for each in short), *map(_no_files, full)]:
        raise DoesNotFit(problems)
    return [f"disk {each.room.line()}; to come: {_parts(each)}" for each in disks]


def _parts(each: Shortage) -> str:
    return ", ".join(f"{need.name} {format_bytes(need.num_bytes)}" for need in each.needs)


def _too_small(each: Shortage, disks: list[Shortage], environ: Mapping[str, str]) -> Problem:
    biggest = biggest_folder([need.place.parent for need in each.needs] + _homes(environ), each.room.mount)
    most = max(each.needs, key=lambda need: need.num_bytes)
    where = _elsewhere(each, disks, environ)
    is_run = most.moved_by == "output_dir"
    target = where / ("runs" if is_run else "cache") if where else "FOLDER_ON_A_LARGER_DISK"
    fewer = "   (fewer bytes: save_total_limit=1, or save_steps=no)"
    typed = f"output_dir={target}{fewer}" if is_run else f"export {most.moved_by}={target}"
    held = f"; the biggest folder there is {biggest[0]} ({format_bytes(biggest[1])})" if biggest else ""
    return Problem(
        where=f"disk {each.room.mount}",
        what=f"{format_bytes(each.num_bytes)} are to come ({_parts(each)}), "
        f"{format_bytes(each.room.free_bytes)} are free{held}",
        right=f"{format_bytes(each.num_bytes)} free there, or {most.name} on a larger disk",
        type=typed,
    )


def _no_files(each: Shortage) -> Problem:
    return Problem(
        where=f"disk {each.room.mount}",
        what="no further file can be made there: its inodes are used up, whatever bytes are free",
        right="fewer small files: old caches, unpacked data sets, environments",
        type=f"df -i {each.room.mount}",
    )


def _homes(environ: Mapping[str, str]) -> list[Path]:
    """Where forgotten caches lie."""
    home = Path(environ.get("HOME") or Path.home())
    return [home, home / ".cache"]


def _elsewhere(each: Shortage, disks: list[Shortage], environ: Mapping[str, str]) -> Path | None:
    """A place on another disk: a rented machine's data disk, else one that the run uses anyway."""
    platform = find_platform(environ)
    data = platform.data_disk if platform else None
    if data is not None and mount_of(data, [other.room.mount for other in disks]) != each.room.mount:
        return data
    others = [other.room for other in disks if other.room.free_bytes > each.num_bytes]
    best = max(others, key=lambda room: room.free_bytes).mount if others else None
    return Path(environ.get("HOME") or Path.home()) if best == Path("/") else best

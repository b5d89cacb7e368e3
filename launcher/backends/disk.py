"""The folder on a disk that ZeRO-Infinity pages to: whether it can be used, and one of a run's own in it.

Torch-free. DeepSpeed opens its files past the page cache (O_DIRECT), keeps locked buffers for them, and
leaves them lying: each rank works in a folder of its own here, which is locked while it lives, so that
the next start can tell what a killed run has left behind, and removes it.
"""

import fcntl
import os
import resource
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from launcher.backends import operators
from launcher.errors import BadValue, HardwareError, Problem
from launcher.hardware.free_space import free_bytes, require_free
from launcher.units import format_bytes

BLOCKS = ("offload_optimizer", "offload_param")
_PREFIX, _LOCK = "launcher-zero3-", "in-use"
_CAN_LOCK_ANY = 14  # CAP_IPC_LOCK of capabilities(7)


def folders(config: Mapping[str, Any]) -> list[Path]:
    """Where a DeepSpeed JSON puts its files, absolute, as seen from here. Raises BadValue without a path."""
    zero = config.get("zero_optimization")
    blocks = [zero.get(name) for name in BLOCKS] if isinstance(zero, Mapping) else []
    found = [block.get("nvme_path") for block in blocks if isinstance(block, Mapping) and is_on_disk(block)]
    if any(not path for path in found):
        raise BadValue(
            Problem(
                where="zero_optimization",
                what='"device": "nvme" stands without "nvme_path"',
                right="the folder on a local disk that DeepSpeed pages to",
                type='"nvme_path": "/mnt/nvme/offload"',
            )
        )
    return list(dict.fromkeys(Path(str(path)).expanduser().absolute() for path in found))


def is_on_disk(block: Mapping[str, Any]) -> bool:
    """Whether an offload block of a DeepSpeed JSON names a disk."""
    return block.get("device") == "nvme"


def require_usable(config: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """What to tell of the disk that a JSON names; nothing where it names none.

    Raises HardwareError with all that is missing: folder, direct access, library, compiler.
    """
    places = folders(config)
    if not places:
        return []
    found = [problem for place in places for problem in _problems(place)]
    found += operators.problems(operators.ASYNC_IO, environ)
    if found:
        raise HardwareError(found)
    lines = [f"pages to {place}: {format_bytes(free_bytes(place))} free" for place in places]
    if not operators.is_compiled(operators.ASYNC_IO, environ):
        lines.append("DeepSpeed's async_io is compiled now, once on this machine: minutes")
    return lines


def _problems(place: Path) -> list[Problem]:
    there = place if place.exists() else place.parent
    if not there.is_dir():
        what = "is no folder" if there.exists() else "is not there"
        return [_unusable(place, f"{there} {what}", f"mkdir -p {place}")]
    if not os.access(there, os.W_OK | os.X_OK):
        return [_unusable(place, f"{there} is not yours to write in", f"sudo chown $USER {there}")]
    return [] if _takes_direct_access(there) else [_unusable(place, _NO_DIRECT.format(there), _ANOTHER)]


_NO_DIRECT = "{} is on a file system without direct access (O_DIRECT), such as one in memory"
_ANOTHER = "backend.nvme_path=FOLDER_ON_A_LOCAL_DISK"


def _unusable(place: Path, what: str, type_: str) -> Problem:
    return Problem(
        where=f"nvme_path {place}", what=what, right="a folder of yours on a fast local disk", type=type_
    )


def _takes_direct_access(folder: Path) -> bool:
    import tempfile  # slow to import, and every verb imports this file

    with tempfile.NamedTemporaryFile(dir=folder) as file:
        try:
            os.close(os.open(file.name, os.O_RDONLY | getattr(os, "O_DIRECT", 0)))
        except OSError:
            return False
    return True


def require_space(place: Path, needed_bytes: int) -> None:
    """Raise DoesNotFit where the disk has less left than the files will take."""
    require_free(
        place,
        needed_bytes,
        where=f"nvme_path {place}",
        takes="weights, moments and gradients take",
        right=f"{format_bytes(needed_bytes)} free: 20 bytes a trained parameter, 2 or 4 a frozen one",
        type="backend.nvme_path=FOLDER_ON_A_LARGER_DISK, or adapter=lora",
    )


def require_lockable(needed_bytes: int) -> None:
    """Raise HardwareError where this process may not lock the buffers that the disk is read into."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit == resource.RLIM_INFINITY or needed_bytes <= limit or _may_lock_any():
        return
    raise HardwareError(
        Problem(
            where="ulimit -l",
            what=f"{format_bytes(needed_bytes)} of buffers must be locked in memory, "
            f"{format_bytes(limit)} are allowed",
            right="no limit, in the shell that starts the run",
            type="ulimit -l unlimited   (a container: --ulimit memlock=-1), or --backend zero3_offload",
        )
    )


def _may_lock_any() -> bool:
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    effective = [line.split()[1] for line in lines if line.startswith("CapEff:")]
    return any(int(text, 16) >> _CAN_LOCK_ANY & 1 for text in effective)


@dataclass(frozen=True, kw_only=True)
class OwnFolder:
    """A rank's own folder below the `nvme_path`, locked while its process lives."""

    path: Path
    lock: IO[bytes]

    def remove(self) -> None:
        """The folder with all files in it; the place itself stays."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()


def take_folder(place: Path, rank: int) -> OwnFolder:
    """A new folder for this rank; what killed runs have left behind is removed first."""
    import socket
    import tempfile

    place.mkdir(exist_ok=True)
    for left in place.glob(f"{_PREFIX}*"):
        if not _is_in_use(left):
            shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=place))
    lock = (new / _LOCK).open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # renamed only now: a folder of this name without a lock has no owner
    path = new.rename(place / f"{_PREFIX}{socket.gethostname()}-{os.getpid()}-rank{rank}-{new.name[5:]}")
    return OwnFolder(path=path, lock=lock)


def _is_in_use(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False

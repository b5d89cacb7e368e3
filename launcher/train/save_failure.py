"""Why a checkpoint could not be written, in words: what it needs, what is free, what to type."""

import errno
import shlex
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import EXIT_RESUMABLE, Problem, TrainError
from launcher.hardware.free_space import free_bytes
from launcher.units import format_bytes

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class SaveFailed(TrainError):
    """The last save of a run failed, or the model could not be exported; what was whole before is kept."""

    exit_code = EXIT_RESUMABLE


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One save that failed. `number` is the system's errno, 0 where it was no system error."""

    name: str
    folder: Path
    reason: str
    number: int = 0
    needed_bytes: int = 0
    free_bytes: int = 0
    rank: int = 0

    def what(self) -> str:
        """The fact, with figures where space is the cause."""
        text = f"{self.name} could not be saved: {self.reason}"
        if self.number in _FULL:
            text += (
                f" ({format_bytes(self.needed_bytes)} are needed in {self.folder}, "
                f"{format_bytes(self.free_bytes)} are free)"
            )
        return text + (f" (rank {self.rank})" if self.rank else "")

    def type(self) -> str:
        """What would let the next save succeed."""
        folder = shlex.quote(str(self.folder))
        if self.number == errno.EFBIG:
            return "ulimit -f unlimited in the shell that starts the run"
        if self.number in _FULL:
            return f"df -h {folder}; then remove what you do not need on that disk"
        if self.number in _FORBIDDEN:
            return f"ls -ld {folder}; findmnt -T {folder}; then make it writable for {_user()}"
        return f"df -h {folder}; dmesg | tail: the disk itself may be failing"


def failure_of(error: BaseException, *, name: str, folder: Path, needed_bytes: int, rank: int) -> Failure:
    """The failure that an exception stands for."""
    number, said = (error.errno or 0, error.strerror) if isinstance(error, OSError) else (0, None)
    return Failure(
        name=name,
        folder=folder,
        reason=said or f"{type(error).__name__}: {error}",
        number=number,
        needed_bytes=needed_bytes,
        free_bytes=_free(folder),
        rank=rank,
    )


def require_room(folder: Path, needed_bytes: int) -> None:
    """Raise ENOSPC before the disk is filled up with a half checkpoint."""
    if _free(folder) < needed_bytes:
        raise OSError(errno.ENOSPC, "no space left on the disk", str(folder))


def _free(folder: Path) -> int:
    try:
        return free_bytes(folder)
    except OSError:
        return 0


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return "this user"


def last_save_failed(failure: Failure, *, kept: Path | None, exported: Path | None) -> SaveFailed:
    """The error for the end of a run whose last checkpoint is missing."""
    held = f"{kept.name} is the newest whole checkpoint" if kept else "there is no whole checkpoint"
    model = f"the trained model is in {exported}; " if exported else ""
    error = SaveFailed(
        Problem(
            where=str(failure.folder),
            what=failure.what(),
            right=f"{model}{held}",
            type=failure.type() + ("" if exported else "; then the same command with --resume"),
        )
    )
    if exported:
        error.exit_code = TrainError.exit_code
    return error

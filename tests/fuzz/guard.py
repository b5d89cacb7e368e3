"""What an input may not do: raise anything but a LauncherError, take for ever, or write elsewhere."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from launcher.errors import LauncherError

CPU_LIMIT_S = 20.0  # of this process: another process's work does not count
_WRITING = {
    *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod"),
    *("shutil.rmtree", "shutil.move", "shutil.copyfile"),
}
_FORBIDDEN = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect", "os.fork"}
_allowed: list[Path] = []
_hooked: list[bool] = []


class Broken(Exception):  # noqa: N818
    """A promise that an input broke."""


def kept(call: Callable[[], object], folder: Path) -> str:
    """Do the call. Returns `passed` or `refused`; raises Broken, or whatever else came out."""
    with _only_inside(folder), _bounded():
        try:
            call()
        except LauncherError as error:
            if not str(error).strip() or not all(problem.what for problem in error.problems):
                raise Broken("an error without words") from error
            return "refused"
    return "passed"


@contextmanager
def _bounded() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Broken(f"it took more than {CPU_LIMIT_S:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _only_inside(folder: Path) -> Iterator[None]:
    """An audit hook cannot be taken away again: it is asleep while no folder is allowed."""
    if not _hooked:
        sys.addaudithook(_look)
        _hooked.append(True)
    _allowed.append(folder.resolve())
    try:
        yield
    finally:
        _allowed.pop()


def _look(event: str, args: tuple[Any, ...]) -> None:
    if not _allowed:
        return
    if event in _FORBIDDEN:
        raise Broken(f"it called {event}{args[:1]}")
    is_open = event == "open" and len(args) > 2 and isinstance(args[0], str | bytes) and _writes(args)
    if (is_open or event in _WRITING) and not _is_inside(args[0] if is_open else _whole(args)):
        raise Broken(f"{event} outside the folder: {args[0]!r}")


def _whole(args: tuple[Any, ...]) -> object:
    """The path; of an open file, and of a name in an open folder (the last argument), too."""
    path, folder = args[0], args[-1]
    if isinstance(path, int):
        return Path(f"/proc/self/fd/{path}").readlink()
    is_in_folder = isinstance(path, str) and not path.startswith("/") and isinstance(folder, int)
    return Path(f"/proc/self/fd/{folder}").readlink() / path if is_in_folder and folder > 2 else path


def _writes(args: tuple[Any, ...]) -> bool:
    flags = args[2] if isinstance(args[2], int) else 0
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _is_inside(path: object) -> bool:
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    if name.endswith(".pyc") or "__pycache__" in name or name == os.devnull:  # Python's own, at first imports
        return True
    return Path(name).absolute().is_relative_to(_allowed[-1])

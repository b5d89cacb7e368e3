"""Whose a run folder is: one process at a time writes into it, and the next one is told who that is.

A POSIX record lock: the kernel drops it with the process, kill -9 included, so there is no stale one; a
forked data worker does not inherit it, so a run can be started again at once. The file's content only
serves the message. Nobody may open the file a second time in the owner's process: closing it would drop
the lock (fcntl(2)).
"""

import atexit
import errno
import fcntl
import json
import os
import shlex
import socket
import sys
import time
from pathlib import Path
from typing import IO

from launcher.errors import Conflict, HardwareError, Problem

FILE = ".owner"
_HELD = (errno.EACCES, errno.EAGAIN)


# What this process owns: a lock lasts as long as its file is open.
_held: dict[Path, IO[str]] = {}


@atexit.register
def _close() -> None:
    for file in _held.values():  # else the interpreter complains of each at its end
        file.close()


def own(folder: Path) -> list[str]:
    """Take an existing folder for this process until it ends; lines on what could not be made sure of.

    Raises Conflict where another live process has it, HardwareError where nothing can be written there.
    """
    place = folder.absolute()
    if place in _held:
        return []
    file = _open(place)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        words = _holder(file.read())
        if error.errno in _HELD:
            file.close()
            raise _taken(folder, words) from None
        _held[place] = file
        return [f"{folder}: no locks on this file system ({error.strerror}): start no second run there"]
    _held[place] = file
    _sign(file)
    return []


def give_up(folder: Path) -> None:
    """Let another process take a folder, or this one take another of the same name."""
    if (file := _held.pop(folder.absolute(), None)) is not None:
        file.close()


def _open(folder: Path) -> IO[str]:
    try:
        return os.fdopen(os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+")
    except OSError as error:
        raise cannot_write(folder, error) from None


def cannot_write(folder: Path, error: OSError) -> HardwareError:
    """The error where a run's folder cannot be made, or nothing written in it."""
    place = shlex.quote(str(folder))
    return HardwareError(
        Problem(
            where=str(folder),
            what=f"nothing can be written here: {error.strerror}",
            right="a run folder that is yours to write in, on a disk with room",
            type=f"ls -ld {place}; df -h {place}; or --output_dir FOLDER",
        )
    )


def _sign(file: IO[str]) -> None:
    """Leave process, machine and command for the message that another one may get."""
    command = " ".join(sys.argv)[:200]
    record = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time(), "command": command}
    file.seek(0)
    file.truncate()
    file.write(json.dumps(record) + "\n")
    file.flush()


def _holder(text: str) -> str:
    try:
        held = json.loads(text)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(held["since"]))
        return f"process {held['pid']} on {held['host']}, since {since}"
    except (ValueError, KeyError, TypeError):
        return "another process"


def _taken(folder: Path, words: str) -> Conflict:
    return Conflict(
        Problem(
            where=str(folder),
            what=f"this folder belongs to a run that is still alive: {words}",
            right="one run at a time in a folder; a run that was asked to stop first saves",
            type="--name OTHER, or wait for it to end, or end it",
        )
    )

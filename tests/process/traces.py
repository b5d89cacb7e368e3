"""What a run could leave behind: processes, listening ports, shared memory, temporary files.

Processes are told by a variable that every descendant inherits, whatever its parent, group or session.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

MARK = "LAUNCHER_TEST_FAMILY"
SHM = Path("/dev/shm")
_LISTENS = "0A"


def marked(mark: str) -> list[int]:
    """Pids of the living that carry the mark; the dead whom nobody has reaped yet do not count."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _pids() if wanted in _read(pid, "environ").split(b"\0") and not _is_zombie(pid)]


def rank_of(pid: int) -> int | None:
    """Which rank the process is; None for starters, watchdogs and data workers' parents."""
    words = _read(pid, "cmdline").split(b"\0")
    if not any(word.endswith(b"run.py") for word in words[1:3]):
        return None
    found = [each for each in _read(pid, "environ").split(b"\0") if each.startswith(b"RANK=")]
    return int(found[0].partition(b"=")[2]) if found else 0


def words(pid: int) -> str:
    """What was typed to start the process, in short."""
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")[:200]


def ports_of(pids: list[int]) -> set[str]:
    """Inodes of the sockets on which these processes listen."""
    held = {inode for pid in pids for inode in _sockets(pid)}
    return held & listening()


def listening() -> set[str]:
    """Inodes of all sockets that listen on this machine."""
    found = set()
    for name in ("tcp", "tcp6"):
        path = Path("/proc/net") / name
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        found |= {line.split()[9] for line in lines if line.split()[3] == _LISTENS}
    return found


def shared_memory() -> set[str]:
    """Names of the files in /dev/shm."""
    return {path.name for path in SHM.iterdir()} if SHM.is_dir() else set()


def abandoned(names: set[str]) -> set[str]:
    """Those of the shared-memory files that no living process maps or holds open."""
    return {name for name in names - held_shared_memory(_pids()) if (SHM / name).exists()}


def held_shared_memory(pids: list[int]) -> set[str]:
    """Names of the shared-memory files that these processes map or hold open."""
    texts = [_read(pid, "maps").decode(errors="replace") + "\n".join(_descriptors(pid)) for pid in pids]
    return {name for text in texts for name in re.findall(rf"{SHM}/([^\s/]+)", text)}


def files_in(folder: Path) -> list[str]:
    """Everything below the folder, by its path from there."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # gone, or another person's
        return b""


def _is_zombie(pid: int) -> bool:
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] in ([b"Z"], [])


def _descriptors(pid: int) -> Iterator[str]:
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return
    for link in links:
        try:
            yield os.readlink(link)  # noqa: PTH115 (pathlib resolves "socket:[1]" as a path)
        except OSError:
            continue


def _sockets(pid: int) -> set[str]:
    texts = (re.fullmatch(r"socket:\[(\d+)\]", text) for text in _descriptors(pid))
    return {match.group(1) for match in texts if match}

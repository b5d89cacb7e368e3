"""Rendezvous ports on this machine: which are free, and who holds one that is not."""

import socket
from collections.abc import Iterator
from pathlib import Path

DEEPSPEED_PORT = 29500


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a listener could bind there now."""
    for address in {host, "0.0.0.0"}:  # noqa: S104 (only tested, never listened on)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True


def free_port() -> int:
    """A port that nobody listens on. The kernel does not hand it out again at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("0.0.0.0", 0))
        return int(probe.getsockname()[1])


def holder(port: int) -> str:
    """`PID 4711 (python train.py ...)` of the listener, or that it cannot be seen."""
    sockets = _listening_inodes(port)
    for pid in _pids():
        if sockets & _socket_inodes(pid):
            return f"PID {pid} ({_command(pid)})"
    return "a process that this user cannot see"


def _listening_inodes(port: int) -> set[str]:
    """Inodes of sockets in state 0A (listen) on that port, from the kernel's own tables."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in _lines(table)[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(fields[9])
    return inodes


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:  # no IPv6, or not Linux
        return []


def _pids() -> Iterator[int]:
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            yield int(entry.name)


def _socket_inodes(pid: int) -> set[str]:
    inodes = set()
    try:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except OSError:  # gone meanwhile, or another user's
        return inodes
    return inodes


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "gone"
    return " ".join(" ".join(words).split())[:100]

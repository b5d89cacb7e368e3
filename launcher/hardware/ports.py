"""Rendezvous ports on this machine: which are free, and who holds one that is not."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path

DEEPSPEED_PORT = 29500
_FIRST, _TRIES = 20_000, 200
_KERNELS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")


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
    """A port that nobody listens on, by lot from those below the kernel's own range where that is known.

    Seconds pass until a rank listens there. Out of its own range the kernel would meanwhile hand the port to
    any connection; two starts meet on one only where they draw the same.
    """
    draw = random.Random()  # not the shared one: a seed of somebody's would give every start the same port
    known = _below_the_kernels()
    for port in draw.sample(known, min(_TRIES, len(known))):
        if port != DEEPSPEED_PORT and is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("0.0.0.0", 0))
        return int(probe.getsockname()[1])


def _below_the_kernels() -> range:
    """Ports from 20,000 on that the kernel gives to nobody by itself; empty where there are but few."""
    words = " ".join(_lines(str(_KERNELS_OWN))).split()
    end = int(words[0]) if words else 0
    return range(_FIRST, end) if end - _FIRST >= _TRIES else range(0)


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

"""What a rented machine offers beside its cards: disks, a panel, a way out to the hub, a way to stop paying.

A platform is a module in `platforms/` that looks at a root folder, the environment and the host's name.
On any other machine `find_platform` gives None, and nothing that asks it changes anything.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.registry import Registry

# A folder that stands for `/`: how a whole instance is rehearsed on another machine.
ROOT_VARIABLE = "LAUNCHER_ROOT"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a platform is recognised by."""

    root: Path
    environ: Mapping[str, str]
    hostname: str


@dataclass(frozen=True, kw_only=True)
class Platform:
    """Facts of the machine that was rented; None and () where it has no such thing.

    `evidence` are the marks that it was recognised by, in words. `data_disk` survives a shutdown and is fast;
    `network_disk` is shared between machines and slow with many files.
    """

    name: str
    evidence: tuple[str, ...]
    home: Path
    data_disk: Path | None
    network_disk: Path | None
    public_disk: Path | None
    board_folder: Path | None
    board_port: int | None
    public_ports: tuple[int, ...]
    mirror: str
    proxy_script: Path | None
    shutdown_command: Path | None
    message_url: str
    message_token: str
    num_gpus: int

    @property
    def is_sure(self) -> bool:
        """Whether two marks agree: a variable alone may have been copied from another machine."""
        return len(self.evidence) >= 2


@dataclass(frozen=True, kw_only=True)
class PlatformPiece:
    """One platform that can be recognised; `detect` gives None elsewhere."""

    name: str
    detect: Callable[[Surroundings], Platform | None]


PLATFORMS: Registry[PlatformPiece] = Registry("platform", "launcher.hardware.platforms")


def root_of(environ: Mapping[str, str]) -> Path:
    """The folder that stands for `/`."""
    return Path(environ.get(ROOT_VARIABLE) or "/")


def find_platform(
    environ: Mapping[str, str], root: Path | None = None, hostname: str | None = None
) -> Platform | None:
    """The platform this machine belongs to, or None."""
    around = Surroundings(
        root=root_of(environ) if root is None else root,
        environ=environ,
        hostname=socket.gethostname() if hostname is None else hostname,
    )
    return next((found for piece in PLATFORMS if (found := piece.detect(around)) is not None), None)

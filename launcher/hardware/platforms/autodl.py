"""AutoDL: containers with up to eight cards, a small system disk, a data disk that outlives a shutdown.

Facts as its documentation and several users describe them (2026): `/` has 30 GB and goes into saved images;
`/root/autodl-tmp` is the data disk; `/root/autodl-fs` is shared within a region and may be absent; the
TensorBoard tile listens on 6007 and reads `/root/tf-logs`; only 6006 and 6008 are open to the outside, with
no login; billing ends with `/usr/bin/shutdown`, called by that path and without arguments.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from launcher.hardware.platform_facts import PLATFORMS, Platform, PlatformPiece, Surroundings

_VARIABLES = ("AutoDLContainerUUID", "AutoDLRegion")
_MOTD, _DATA = "etc/autodl-motd", "root/autodl-tmp"


def detect(around: Surroundings) -> Platform | None:
    """The instance this is, or None. A login shell's variables are missing elsewhere, so files count too."""
    evidence = tuple(_marks(around))
    has_place = (around.root / _MOTD).is_file() and (around.root / _DATA).is_dir()
    by_name = any(mark.startswith(("variable", "hostname")) for mark in evidence)
    return _facts(around, evidence) if by_name or has_place else None


def _marks(around: Surroundings) -> Iterator[str]:
    for name in _VARIABLES:
        if around.environ.get(name):
            yield f"variable {name}"
            break
    if around.hostname.startswith("autodl-container-"):
        yield f"hostname {around.hostname}"
    if (around.root / _MOTD).is_file():
        yield f"file /{_MOTD}"
    if (around.root / _DATA).is_dir():
        yield f"folder /{_DATA}"


def _facts(around: Surroundings, evidence: tuple[str, ...]) -> Platform:
    root, home = around.root, around.root / "root"
    proxy = root / "etc/network_turbo"
    return Platform(
        name="AutoDL",
        evidence=evidence,
        home=home,
        data_disk=_folder(root / _DATA),
        network_disk=_folder(home / "autodl-fs"),
        public_disk=_folder(home / "autodl-pub"),
        board_folder=_folder(home / "tf-logs"),
        board_port=6007,
        public_ports=(6006, 6008),
        mirror="https://hf-mirror.com",
        proxy_script=proxy if proxy.is_file() else None,
        shutdown_command=_shutdown(around),
        message_url="https://www.autodl.com/api/v1/wechat/message/send",
        message_token="AUTODL_TOKEN",
        num_gpus=sum(path.name.removeprefix("nvidia").isdigit() for path in (root / "dev").glob("nvidia*")),
    )


def _folder(path: Path) -> Path | None:
    return path if path.is_dir() else None


def _shutdown(around: Surroundings) -> Path | None:
    """The platform's own command; a namesake on PATH only where it lies below the same root."""
    usual = around.root / "usr/bin/shutdown"
    if os.access(usual, os.X_OK):
        return usual
    found = shutil.which("shutdown", path=around.environ.get("PATH"))
    return Path(found) if found and Path(found).is_relative_to(around.root) else None


PLATFORMS.register("autodl", PlatformPiece(name="autodl", detect=detect))

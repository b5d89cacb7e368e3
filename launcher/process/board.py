"""TensorBoard: a run's events linked into the folder that a platform's panel reads, and where to look.

A link stands under the run's name; one that points elsewhere, or a real folder, is never replaced: the next
free name is taken. Nobody's TensorBoard is stopped: a port that is taken is left, and the next one named.
"""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from launcher.hardware.platform_facts import Platform, find_platform
from launcher.hardware.ports import holder, is_free

_USUAL_PORTS = range(6006, 6106)


def show_run(folder: Path, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Link the run folder where a panel looks, if there is one; lines that say where its curves are."""
    platform = find_platform(environ)
    if platform is None or platform.board_folder is None:
        return (_own_board(folder.parent, _USUAL_PORTS, host=""),)
    try:
        link = link_run(platform.board_folder, folder)
    except OSError as error:
        return (f"TensorBoard: no link in {platform.board_folder} ({error.strerror}): its panel stays empty",)
    return (_panel(platform, link), _own_board(folder.parent, platform.public_ports, host=" --host 0.0.0.0"))


def link_run(panel: Path, folder: Path) -> Path:
    """The link to this run folder below `panel`; made once, and never over anything. Raises OSError."""
    target = folder.absolute()
    names = [target.name, *(f"{target.name}-{number}" for number in range(2, 10_000))]
    for link in (panel / name for name in names):
        if link.is_symlink() and link.readlink() == target:
            return link
        if target == link.absolute():
            return link
        try:
            link.symlink_to(target, target_is_directory=True)
        except FileExistsError:  # somebody's, or another run's that started at the same moment
            continue
        return link
    raise FileExistsError(f"every name from {target.name} to {names[-1]} is taken in {panel}")


def _panel(platform: Platform, link: Path) -> str:
    return (
        f"TensorBoard: open the tile of {platform.name}'s panel (port {platform.board_port}, it reads "
        f"{platform.board_folder}); this run is '{link.name}'"
    )


def _own_board(folder: Path, ports: Iterable[int], host: str) -> str:
    """The line that starts a board by hand, on a port that nobody holds; who holds the first, if somebody."""
    first, *_ = known = [*ports]
    free = next((port for port in known if is_free(port)), None)
    typed = f"tensorboard --logdir {shlex.quote(str(folder))}{host} --port {free or 0}"
    taken = "" if free == first else f"; port {first} is held by {holder(first)} and left alone"
    open_to_all = "; no login stands in front of that port" if host else ""
    return f"TensorBoard by hand: {typed}{taken}{open_to_all}"

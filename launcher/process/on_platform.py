"""Make a rented machine's own ways this process's: data disk, way out to the hub, no model without a card.

Everything here is variables of the environment, set before any library reads them, and only where a person
has not set them. On a machine of no known platform nothing is touched.
"""

from collections.abc import Mapping, MutableMapping
from pathlib import Path

from launcher.errors import HardwareError, Problem
from launcher.hardware.limits import host_memory_bytes
from launcher.hardware.placement import left_behind, placement
from launcher.hardware.platform_facts import Platform, find_platform, root_of
from launcher.hardware.way_out import way_out
from launcher.plan.write import COMMAND_VARIABLE
from launcher.redact import redact
from launcher.units import format_bytes


def settle_platform(environ: MutableMapping[str, str], *, dry: bool = False) -> tuple[str, ...]:
    """Set what the platform's own disks and mirror ask for; lines for the person. Raises HardwareError.

    `dry` makes no folder. A rank below `launcher run` finds everything set, and says nothing again.
    """
    platform = find_platform(environ)
    if platform is None:
        return ()
    variables = placement(platform, environ, Path.cwd())
    way = way_out(platform, environ)
    lines = [*_placement_lines(platform, variables), *way.lines]
    environ.update(variables | way.variables)
    if not dry:
        _make_temporary(platform, environ)
    return () if COMMAND_VARIABLE in environ else tuple(map(redact, lines))


def _make_temporary(platform: Platform, environ: MutableMapping[str, str]) -> None:
    """A folder for temporary files must be there: Python takes another one otherwise, without a word.

    Also one that an earlier process has only named, and one that somebody has swept away since.
    """
    place = Path(environ.get("TMPDIR", "/tmp"))
    if platform.data_disk is None or not place.is_relative_to(platform.data_disk):
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HardwareError(
            Problem(
                where=str(place),
                what=f"the data disk cannot be written to: {error.strerror}",
                right="a data disk with room; caches, temporary files and runs go there",
                type="df -h ; export TMPDIR=/tmp to leave temporary files on the system disk",
            )
        ) from error


def _placement_lines(platform: Platform, variables: MutableMapping[str, str]) -> list[str]:
    if not variables:
        return []
    names = ", ".join(sorted(variables))
    lines = [f"{platform.name} ({', '.join(platform.evidence)}): {names} point to {platform.data_disk}"]
    if (usual := left_behind(platform, variables)) is not None:
        hub = Path(variables["HF_HOME"]) / "hub"
        lines.append(f"models in {usual} are not seen there; type: mkdir -p {hub} && mv {usual}/* {hub}/")
    return lines


def require_card(environ: Mapping[str, str], device: str, recipe: str) -> None:
    """Refuse to load a model where a rented machine was switched on without its cards.

    `device` is the recipe's; a person who types `cpu` means it. Raises HardwareError.
    """
    platform = find_platform(environ)
    if platform is None or platform.num_gpus or device == "cpu":
        return
    memory = format_bytes(host_memory_bytes(root_of(environ)).amount)
    raise HardwareError(
        Problem(
            where=f"{platform.name} without a GPU",
            what=f"this instance was started without its cards ({memory} of memory): no model is loaded here",
            right=f"here: launcher check {recipe}; launcher plan {recipe}; launcher prepare {recipe} "
            "(downloads and tokenises). Then start the instance with its cards, and run",
            type=f"launcher prepare {recipe}   (hardware.device=cpu trains here all the same, slowly)",
        )
    )

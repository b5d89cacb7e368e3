"""Which cards this process may use, without importing torch: the environment, then the driver."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.hardware.peer import lacks_peers_by_name, peer_variables
from launcher.units import MIB

_ASK_DRIVER_TIMEOUT_S = 20
_QUERY = ("--query-gpu=index,uuid,memory.total,name", "--format=csv,noheader,nounits")
_DRIVER = Path("/proc/driver/nvidia")


def visible_gpus(environ: Mapping[str, str], devices: Path = Path("/dev")) -> tuple[str, ...]:
    """Ids as CUDA_VISIBLE_DEVICES would list them. An empty or negative list hides every card."""
    asked = environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return tuple(str(index) for index in range(_count(environ, devices)))
    ids = []
    for name in (part.strip() for part in asked.split(",")):
        if name in ("", "-1", "NoDevFiles"):  # CUDA stops reading at the first id that it does not know
            break
        ids.append(name)
    return tuple(ids)


def _count(environ: Mapping[str, str], devices: Path) -> int:
    nodes = [path for path in devices.glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()]
    return len(nodes) or (_ask_driver(environ) if (devices / "dxg").exists() else 0)


def _ask_driver(environ: Mapping[str, str]) -> int:
    """Under WSL2 the cards have no device files of their own."""
    return sum(line.startswith("GPU ") for line in _driver_says(environ, "-L"))


def _driver_says(environ: Mapping[str, str], *words: str) -> list[str]:
    """The lines of nvidia-smi; none where there is no such tool, or it does not answer."""
    tool = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if tool is None:
        return []
    try:
        done = subprocess.run(
            [tool, *words], capture_output=True, text=True, timeout=_ASK_DRIVER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()


def peer_environment(
    environ: Mapping[str, str], cards: Sequence[str], driver: Path = _DRIVER
) -> dict[str, str]:
    """What several of these cards need set so that NCCL does not try a path that they lack."""
    if len(cards) < 2:
        return {}
    named = _named_cards(environ, cards) or _named_by_driver_files(driver)
    return peer_variables((lacks_peers_by_name(name, memory) for name, memory in named), environ)


def _named_cards(environ: Mapping[str, str], cards: Sequence[str]) -> list[tuple[str, int]]:
    """Name and memory in bytes of the given cards; of all where none is known by its id."""
    lines = [line.split(", ", 3) for line in _driver_says(environ, *_QUERY)]
    whole = [line for line in lines if len(line) == 4 and line[2].isdigit()]
    mine = [line for line in whole if line[0] in cards or line[1].startswith(tuple(cards))]
    return [(name, int(memory) * MIB) for _, _, memory, name in mine or whole]


def _named_by_driver_files(driver: Path) -> list[tuple[str, int]]:
    """Names alone: the driver's files do not give the memory."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(driver.glob("gpus/*/information")))
    return [
        (found.group(1).strip(), 0) for text in texts if (found := re.search(r"^Model:(.*)$", text, re.M))
    ]

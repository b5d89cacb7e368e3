"""Which cards this process may use, without importing torch: the environment, then the driver."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

_ASK_DRIVER_TIMEOUT_S = 20


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
    tool = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if tool is None:
        return 0
    listed = subprocess.run(
        [tool, "-L"], capture_output=True, text=True, timeout=_ASK_DRIVER_TIMEOUT_S, check=False
    )
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())

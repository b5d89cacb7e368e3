"""Cards without a direct path to one another, and the variables that keep NCCL from trying one.

A driver may offer peer access that the board does not have (GeForce 40 and 50 series, rented "vGPU"
cards): the first collective then hangs. A 3090 is left alone: its bridge is worth having.
"""

import re
from collections.abc import Iterable, Mapping

from launcher.hardware.catalog import Gpu, find

_WITHOUT_PEERS = re.compile(r"GeForce RTX (40|50)\d\d|vGPU", re.IGNORECASE)
_VARIABLES = ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")


def lacks_peers(gpu: Gpu) -> bool:
    """Whether several of this card reach one another only through the host."""
    return gpu.p2p == "no"


def lacks_peers_by_name(smi_name: str, memory_bytes: int = 0) -> bool:
    """The same for a card as its driver names it; memory tells cards of one name apart (0: unknown)."""
    gpu = find(smi_name, memory_bytes)
    return bool(_WITHOUT_PEERS.search(smi_name)) or (gpu is not None and lacks_peers(gpu))


def peer_variables(without_peers: Iterable[bool], environ: Mapping[str, str]) -> dict[str, str]:
    """What to set when any card lacks peers; a variable that a person has set stays theirs."""
    if not any(without_peers):
        return {}
    return {name: "1" for name in _VARIABLES if name not in environ}

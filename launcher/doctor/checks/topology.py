"""How several cards are wired, and whether NCCL is told the same."""

from collections.abc import Iterator

from launcher.doctor.check import CHECKS, Check, Finding, bad, good, note
from launcher.doctor.driver import read_topology
from launcher.doctor.patient import Patient
from launcher.hardware.peer import lacks_peers_by_name, peer_variables

_WORDS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "through the CPU's PCIe bridge",
    "NODE": "across PCIe bridges of one CPU",
    "SYS": "across CPU sockets: the slowest way",
}


def examine(patient: Patient) -> Iterator[Finding]:
    """Nothing with one card."""
    cards = patient.driver.cards
    if len(cards) < 2:
        return
    links = read_topology(patient.driver.topology)
    for kind in sorted(set(links.values())):
        pairs = ", ".join(f"{first}-{second}" for (first, second), link in links.items() if link == kind)
        yield good(f"cards {pairs}: {kind} ({_words(kind)})")
    if not links:
        yield note("nvidia-smi topo -m tells nothing here")
    yield from _switches(patient, has_nvlink=any(link.startswith("NV") for link in links.values()))


def _words(kind: str) -> str:
    return f"{kind[2:]} NVLinks" if kind.startswith("NV") else _WORDS.get(kind, "unknown")


def _switches(patient: Patient, *, has_nvlink: bool) -> Iterator[Finding]:
    environ, cards = patient.environ, patient.driver.cards
    without = [lacks_peers_by_name(card.name, card.memory_bytes) for card in cards]
    said = environ.get("NCCL_P2P_DISABLE")
    if any(without) and said == "0":
        yield bad(
            f"NCCL_P2P_DISABLE=0, and {cards[without.index(True)].name} has no peer access: collectives hang",
            "NCCL_P2P_DISABLE=1, which launcher run sets where nobody has set it",
            typed="unset NCCL_P2P_DISABLE",
        )
    elif any(without):
        names = ", ".join(sorted(peer_variables(without, {})))
        yield good(f"cards without peer access: launcher run sets {names} to 1")
    elif has_nvlink and said == "1":
        yield note(
            "NCCL_P2P_DISABLE=1 keeps NCCL off the NVLinks of these cards",
            "the links used: several times faster",
            typed="unset NCCL_P2P_DISABLE",
        )


CHECKS.register("topology", Check(name="topo", order=15, examine=examine))

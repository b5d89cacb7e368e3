"""What nvidia-smi says, read from its own formats: cards, driver, and how the cards are wired."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from launcher.hardware.catalog import Gpu, find
from launcher.units import MIB

_TIMEOUT_S = 20
_QUERY = ("--query-gpu=index,memory.total,compute_cap,driver_version,name", "--format=csv,noheader,nounits")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINK = re.compile(r"NV\d+|PIX|PXB|PHB|NODE|SYS")


@dataclass(frozen=True, kw_only=True)
class Card:
    """One card as its driver names it. `capability` is (0, 0) where the driver is too old to tell it."""

    index: str
    name: str
    memory_bytes: int
    capability: tuple[int, int] = (0, 0)

    @property
    def known(self) -> Gpu | None:
        """The catalogue's card of that name and memory."""
        return find(self.name, self.memory_bytes)

    @property
    def sm(self) -> str:
        """The capability as compilers write it."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


@dataclass(frozen=True, kw_only=True)
class Driver:
    """The driver's answers. `fault` says why there are none although there is a card or a tool."""

    version: str = ""
    cuda: str = ""
    cards: tuple[Card, ...] = ()
    topology: str = ""
    fault: str = ""


def read_driver(environ: Mapping[str, str]) -> Driver:
    """Ask nvidia-smi, the one on PATH; an empty Driver where there is none."""
    tool = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if tool is None:
        return Driver()
    listed, code = _ask(tool, *_QUERY)
    cards = read_cards(listed)
    if code or not cards:
        fault = (listed.strip().splitlines() or ["no answer"])[0][:200]
        return Driver(fault="" if "No devices were found" in listed else fault)
    head, _ = _ask(tool)
    topology = _ask(tool, "topo", "-m")[0] if len(cards) > 1 else ""
    version = listed.splitlines()[0].split(", ")[3]
    return Driver(version=version, cuda=read_cuda(head), cards=cards, topology=topology)


def _ask(tool: str, *words: str) -> tuple[str, int]:
    try:
        done = subprocess.run(
            [tool, *words], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi: {error}", 1
    return done.stdout or done.stderr, done.returncode


def read_cards(text: str) -> tuple[Card, ...]:
    """The cards of the query's lines; a line that is none is left out."""
    rows = [line.split(", ", 4) for line in text.splitlines()]
    return tuple(
        Card(index=row[0], name=row[4], memory_bytes=int(row[1]) * MIB, capability=_capability(row[2]))
        for row in rows
        if len(row) == 5 and row[1].isdigit()
    )


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def read_cuda(head: str) -> str:
    """The newest CUDA that the driver runs, from the first lines of plain `nvidia-smi`."""
    found = re.search(r"CUDA Version:\s*([0-9.]+)", head)
    return found.group(1) if found else ""


def read_topology(text: str) -> dict[tuple[int, int], str]:
    """Pair of cards to their link (`NV4`, `PIX`, `PHB`, `NODE`, `SYS`), each pair once.

    Columns behind the cards are network adapters, and the affinity of cores.
    """
    rows = [re.split(r"\s*\t\s*|\s{2,}", line.strip()) for line in _COLOURS.sub("", text).splitlines()]
    cards = {int(row[0][3:]): row[1:] for row in rows if re.fullmatch(r"GPU\d+", row[0]) and "X" in row[1:]}
    return {
        (first, second): links[second]
        for first, links in cards.items()
        for second in cards
        if second > first and second < len(links) and _LINK.fullmatch(links[second])
    }

"""Which build of torch runs on which card and driver, and the line that installs it.

Sources: CUDA's compatibility guide (a kernel for X.Y runs on X.Z with Z >= Y; PTX for X.Y is compiled on any
newer card; an `a` kernel runs on exactly its card), its table of minimum drivers, PyTorch's release notes for
which wheels carry which architectures.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
# CUDA's major version to the oldest Linux driver that runs it (minor versions are compatible within one).
_DRIVERS = {11: (450, 80), 12: (525, 60), 13: (580, 65)}


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A build to install: CUDA of the wheel index, and torch's bounds."""

    cuda: str
    torch: str
    reason: str

    def line(self) -> str:
        """What to type."""
        return f"pip install '{self.torch}' --index-url https://download.pytorch.org/whl/{self.cuda}"


def covers(capability: tuple[int, int], arch_list: Iterable[str]) -> bool:
    """Whether a build with these architectures has, or can compile, kernels for the card."""
    return any(_runs(capability, arch) for arch in arch_list)


def _runs(capability: tuple[int, int], arch: str) -> bool:
    found = _ARCH.fullmatch(arch)
    if found is None:
        return False
    kind, built, feature = found.group(1), (int(found.group(2)), int(found.group(3))), found.group(4)
    if feature == "a":
        return capability == built
    if kind == "compute" and not feature:
        return capability >= built
    return capability[0] == built[0] and capability[1] >= built[1]


def wheel_for(capability: tuple[int, int]) -> Wheel:
    """The build that carries kernels for the card."""
    if capability >= (10, 0):
        return Wheel(cuda="cu128", torch="torch>=2.7", reason="its kernels came with CUDA 12.8 and torch 2.7")
    if capability < (7, 5):
        return Wheel(cuda="cu126", torch="torch>=2.6", reason="only CUDA 12.6 builds still carry its kernels")
    return Wheel(cuda="cu126", torch="torch>=2.6", reason="any CUDA build from 11.8 on carries its kernels")


def numbers(text: str) -> tuple[int, ...]:
    """The leading whole numbers of a version: `2.13.0+cpu` is (2, 13, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[+a-zA-Z-]", text)[0]))


def driver_runs(driver: str, cuda: str) -> bool:
    """Whether that driver runs a library built for that CUDA; unknown majors are given the doubt."""
    needed = _DRIVERS.get(numbers(cuda)[0]) if numbers(cuda) else None
    return needed is None or not numbers(driver) or numbers(driver)[:2] >= needed


def driver_needed(cuda: str) -> str:
    """The oldest driver for that CUDA, in words."""
    needed = _DRIVERS.get(numbers(cuda)[0]) if numbers(cuda) else None
    return f"{needed[0]}.{needed[1]}" if needed else "unknown"

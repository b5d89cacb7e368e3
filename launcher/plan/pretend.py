"""A machine that is not here: a card from the catalogue, or this host's CPU, described without torch."""

from pathlib import Path

from launcher.facts import Machine
from launcher.hardware import catalog

_BF16_FLAGS = {"avx512_bf16", "amx_tile"}


def pretend_machine(gpu: str | None, num_gpus: int, cpuinfo: Path = Path("/proc/cpuinfo")) -> Machine:
    """So many cards of that name; a CPU where none is named. Raises UnknownSetting for an unknown card."""
    if gpu is None:
        return Machine(device="cpu", num_gpus=0, cpu_has_bf16=_cpu_has_bf16(cpuinfo))
    card = catalog.get(gpu, where="--gpu")
    return Machine(
        device="cuda",
        num_gpus=num_gpus,
        gpu_name=card.smi_name,
        gpu_memory_bytes=card.usable_bytes,
        compute_capability=card.compute_capability,
    )


def _cpu_has_bf16(cpuinfo: Path) -> bool:
    """The flags that torch looks for as well."""
    if not cpuinfo.is_file():
        return False
    flags = (line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("flags"))
    return bool(_BF16_FLAGS & set(next(flags, "").split()))

"""This machine, as torch and the operating system see it now. Imports torch when asked, not before."""

from typing import Any

from launcher.errors import HardwareError, Problem
from launcher.facts import Machine
from launcher.hardware import limits


def machine(device: str) -> Machine:
    """Probe for `auto` (the GPU where there is one), `cuda` or `cpu`.

    With several GPUs the current one is described: every rank probes its own. Raises HardwareError
    when `cuda` is asked for and torch sees none.
    """
    import torch

    found = torch.cuda.is_available()
    if device == "cuda" and not found:
        raise HardwareError(_no_gpu(torch.__version__, torch.version.cuda))
    facts = _gpu_facts(torch) if found and device != "cpu" else {"device": "cpu", "num_gpus": 0}
    return Machine(**facts, **_host_facts(torch))


def _gpu_facts(torch: Any) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "device": "cuda",
        "num_gpus": torch.cuda.device_count(),
        "gpu_name": properties.name,
        "gpu_memory_bytes": properties.total_memory,
        "compute_capability": (properties.major, properties.minor),
    }


def _host_facts(torch: Any) -> dict[str, Any]:
    cores, memory = limits.cores(), limits.host_memory_bytes()
    return {
        "num_cores": cores.amount,
        "cores_source": cores.source,
        "host_memory_bytes": memory.amount,
        "host_memory_source": memory.source,
        "torch_version": torch.__version__,
        "cpu_has_bf16": _cpu_has_bf16(torch),
    }


def _cpu_has_bf16(torch: Any) -> bool:
    """Whether the CPU multiplies in bf16 itself; where it does not, bf16 is slower than fp32.

    torch names these tests with an underscore and has not had all of them since 2.6.
    """
    tests = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, test, bool)() for test in tests)


def _no_gpu(torch_version: str, cuda_version: str | None) -> Problem:
    built = f"built for CUDA {cuda_version}, finds no driver or card" if cuda_version else "is a CPU build"
    return Problem(
        where="hardware.device",
        what=f"cuda is asked for, and there is no GPU to use: torch {torch_version} {built}",
        right="a machine with an NVIDIA GPU (nvidia-smi shows it) and a CUDA build of torch; "
        "small models also train on the CPU",
        type="hardware.device=cpu",
    )

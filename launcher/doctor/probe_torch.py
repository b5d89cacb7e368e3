"""Asked of torch in a process of its own: one JSON line a section; a crash loses only what follows."""

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any


def _torch() -> dict[str, Any]:
    import torch

    devices = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return {
        "version": torch.__version__,
        "cuda": torch.version.cuda,
        "available": torch.cuda.is_available(),
        "arch_list": torch.cuda.get_arch_list() if torch.version.cuda else [],
        "devices": [
            {"name": each.name, "memory_bytes": each.total_memory, "capability": [each.major, each.minor]}
            for each in devices
        ],
        "cpu_has_bf16": any(
            getattr(torch.cpu, name, bool)()
            for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
        ),
    }


def _matmul() -> dict[str, Any]:
    """One element times one element, in each type, on every card (or the CPU): the proof of a kernel."""
    import torch

    places = [f"cuda:{index}" for index in range(torch.cuda.device_count())] or ["cpu"]
    found = {}
    for place in places:
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            name = f"{place} {str(dtype).removeprefix('torch.')}"
            try:
                one = torch.ones(1, 1, dtype=dtype, device=place)
                found[name] = "ok" if float(one @ one) == 1.0 else "a wrong product"
            except (RuntimeError, NotImplementedError) as error:
                found[name] = str(error).splitlines()[0][:200]
    return {"products": found}


def _bitsandbytes() -> dict[str, Any]:
    """NF4 there and back: the mean error of normal numbers is about 0.07 where the kernels work."""
    if find_spec("bitsandbytes") is None:
        return {"absent": True}
    import torch
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit

    place = "cuda" if torch.cuda.is_available() else "cpu"
    numbers = torch.randn(64, 64, generator=torch.Generator().manual_seed(0)).to(place)
    packed, state = quantize_4bit(numbers, quant_type="nf4")
    error = (dequantize_4bit(packed, state) - numbers).abs().mean()
    return {"version": version("bitsandbytes"), "place": place, "mean_error": float(error)}


def _flash_attention() -> dict[str, Any]:
    if find_spec("flash_attn") is None:
        return {"absent": True}
    import flash_attn  # type: ignore[import-not-found, unused-ignore]

    return {"version": flash_attn.__version__}


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "torch": _torch,
    "matmul": _matmul,
    "flash_attention": _flash_attention,
    "bitsandbytes": _bitsandbytes,
}


def main() -> int:
    """Each section on a line; what a library prints meanwhile goes nowhere."""
    os.environ.setdefault("BITSANDBYTES_NOWELCOME", "1")
    for name, ask in SECTIONS.items():
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                found = ask()
            except (Exception, PackageNotFoundError) as error:  # whatever it is, it is the answer
                found = {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"}
        print(json.dumps({"section": name, **found}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

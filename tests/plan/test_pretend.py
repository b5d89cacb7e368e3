"""A machine that is not here, without torch."""

from pathlib import Path

import pytest

from launcher.errors import UnknownSetting
from launcher.hardware.catalog import get, names
from launcher.plan.pretend import pretend_machine


@pytest.mark.parametrize("name", names())
def test_every_card_of_the_table_is_a_machine(name: str) -> None:
    made, gpu = pretend_machine(name, 4), get(name)
    assert (made.device, made.num_gpus, made.gpu_name) == ("cuda", 4, gpu.smi_name)
    assert (made.gpu_memory_bytes, made.compute_capability) == (gpu.usable_bytes, gpu.compute_capability)


@pytest.mark.parametrize(
    ("flags", "has_bf16"), [("fpu avx2 avx512f", False), ("fpu avx512_bf16", True), ("amx_tile", True)]
)
def test_without_a_card_it_is_this_cpu(tmp_path: Path, flags: str, has_bf16: bool) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    made = pretend_machine(None, 2, cpuinfo)
    assert (made.device, made.num_gpus, made.cpu_has_bf16) == ("cpu", 0, has_bf16)


def test_this_cpu_is_seen_as_torch_sees_it() -> None:
    from launcher.hardware.probe import machine

    assert pretend_machine(None, 1).cpu_has_bf16 is machine("cpu").cpu_has_bf16
    assert not pretend_machine(None, 1, Path("/nowhere")).cpu_has_bf16


def test_an_unknown_card_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownSetting, match="rtx3090"):
        pretend_machine("rtx309", 1)

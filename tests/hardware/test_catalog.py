import pytest

from launcher.errors import UnknownSetting
from launcher.hardware import catalog
from launcher.units import GIB


@pytest.mark.parametrize("name", catalog.names())
def test_every_row_is_plausible(name: str) -> None:
    gpu = catalog.get(name)
    assert gpu.name == name
    assert (
        0.85 * gpu.marketed_gb * 1e9 < gpu.usable_bytes <= gpu.reported_bytes <= 1.1 * gpu.marketed_gb * GIB
    )
    assert (7, 0) <= gpu.compute_capability <= (12, 1)
    assert gpu.usable_source in "ABC"
    assert 10 < gpu.fp16_tflops < 2500
    assert 300 < gpu.memory_gb_per_s < 10_000
    assert gpu.nvlink in ("none", "bridge", "yes", "unproven")
    assert gpu.p2p in ("no", "bridge", "pcie", "nvlink")
    assert (gpu.nvlink_gb_per_s > 0) == (gpu.nvlink in ("bridge", "yes"))
    assert gpu.price_cny_per_h is None or (
        0 < gpu.price_cny_per_h[0] <= gpu.price_cny_per_h[1] and gpu.price_source
    )


def test_bf16_follows_the_compute_capability() -> None:
    assert {name for name in catalog.names() if not catalog.get(name).has_bf16} == {
        "rtx2080ti",
        "t4",
        "v100_16",
        "v100_32_pcie",
        "v100_32_sxm2",
    }


@pytest.mark.parametrize(
    ("gib", "expected"), [(23.69, "rtx3090"), (23.57, "rtx3090"), (47.41, "vgpu48_350w"), (35.0, None)]
)
def test_the_same_driver_name_is_told_apart_by_memory(gib: float, expected: str | None) -> None:
    found = catalog.find("NVIDIA GeForce RTX 3090", int(gib * GIB))
    assert (found.name if found else None) == expected


@pytest.mark.parametrize("name", catalog.names())
def test_every_card_is_found_by_its_own_measures(name: str) -> None:
    gpu = catalog.get(name)
    assert catalog.find(gpu.smi_name, gpu.usable_bytes) == gpu


def test_the_makers_name_may_be_absent() -> None:
    found = catalog.find("GeForce RTX 4090", int(23.6 * GIB))
    assert found
    assert found.name == "rtx4090"


def test_unknown_card_names_the_nearest() -> None:
    with pytest.raises(UnknownSetting) as caught:
        catalog.get("rtx4900")
    assert caught.value.problems[0].type == "hardware.gpu=rtx4090"
    assert catalog.find("Some Other Card", 24 * GIB) is None

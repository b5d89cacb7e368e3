"""Which build has kernels for which card, and which driver runs it."""

import pytest

from launcher.doctor.builds import covers, driver_needed, driver_runs, numbers, wheel_for

CU124 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU128 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]


@pytest.mark.parametrize(
    ("capability", "arch_list", "fits"),
    [
        ((12, 0), CU124, False),
        ((10, 0), CU124, False),
        ((12, 0), CU128, True),
        ((12, 1), CU128, True),  # the same major, and PTX
        ((8, 9), CU124, True),  # Ada runs Ampere's kernels
        ((7, 0), CU128, False),  # Volta left with CUDA 12.8 builds
        ((7, 5), CU128, True),
        ((9, 0), ["sm_90a"], True),
        ((9, 1), ["sm_90a"], False),
        ((12, 1), ["sm_120f"], True),
        ((10, 3), ["sm_120f"], False),
        ((12, 0), ["compute_90"], True),
        ((8, 0), ["compute_90"], False),
        ((8, 0), ["sm_86"], False),
        ((8, 0), [], False),
        ((8, 0), ["gfx90a", "nonsense"], False),
    ],
)
def test_b065_an_architecture_list_is_compared_as_cuda_does(
    capability: tuple[int, int], arch_list: list[str], fits: bool
) -> None:
    assert covers(capability, arch_list) is fits


def test_b065_the_wheel_for_each_card() -> None:
    assert wheel_for((12, 0)).line() == (
        "pip install 'torch>=2.7' --index-url https://download.pytorch.org/whl/cu128"
    )
    assert wheel_for((7, 0)).cuda == "cu126"
    assert wheel_for((8, 6)).cuda == "cu126"


@pytest.mark.parametrize(
    ("driver", "cuda", "runs"),
    [
        ("550.54.15", "12.8", True),  # minor versions are compatible within 12
        ("550.54.15", "13.0", False),
        ("580.65.06", "13.0", True),
        ("470.57", "12.1", False),
        ("470.57", "11.8", True),
        ("", "12.8", True),
        ("550.54.15", "99.0", True),
    ],
)
def test_a_driver_runs_what_is_built_for_its_cuda_or_older(driver: str, cuda: str, runs: bool) -> None:
    assert driver_runs(driver, cuda) is runs


def test_versions_are_compared_as_numbers() -> None:
    assert numbers("2.13.0+cpu") == (2, 13, 0)
    assert numbers("5.0.0rc1") == (5, 0, 0)
    assert numbers("2.10.0") > numbers("2.9.1")
    assert numbers("") == ()
    assert driver_needed("12.4") == "525.60"
    assert driver_needed("") == "unknown"

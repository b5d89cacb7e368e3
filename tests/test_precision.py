"""B004: the precision follows what the hardware computes itself, not what a library says is available."""

import pytest

from launcher.errors import HardwareError
from launcher.facts import Machine
from launcher.precision import choose, choose_tf32

OLD = [(7, 0), (7, 5)]
NEW = [(8, 0), (8, 6), (8, 9), (12, 0)]


def card(capability: tuple[int, int]) -> Machine:
    return Machine(device="cuda", num_gpus=1, gpu_name="Tesla V100", compute_capability=capability)


def cpu(has_bf16: bool) -> Machine:
    return Machine(device="cpu", num_gpus=0, cpu_has_bf16=has_bf16)


@pytest.mark.parametrize("capability", NEW)
def test_b004_cards_with_bf16_units_use_them(capability: tuple[int, int]) -> None:
    assert choose("auto", card(capability)).name == "bf16"
    assert choose("bf16", card(capability)).name == "bf16"
    assert choose_tf32("auto", "bf16", card(capability)).enabled
    assert choose_tf32(True, "fp32", card(capability)).enabled


@pytest.mark.parametrize("capability", OLD)
def test_b004_older_cards_get_fp16_with_scaling_and_are_told_so(capability: tuple[int, int]) -> None:
    name, reason = choose("auto", card(capability))
    assert name == "fp16"
    assert "Tesla V100" in reason
    assert "no bf16 units: using fp16 + loss scaling" in reason
    assert "precision: bf16-emulated" in reason


@pytest.mark.parametrize("capability", OLD)
def test_b004_bf16_on_an_older_card_is_refused(capability: tuple[int, int]) -> None:
    with pytest.raises(HardwareError) as caught:
        choose("bf16", card(capability))
    problem = caught.value.problems[0]
    assert problem.where == "training.precision"
    assert "bf16-emulated" in problem.right
    assert problem.type == "training.precision=auto"


@pytest.mark.parametrize("capability", OLD)
def test_b004_emulation_can_be_asked_for_by_name(capability: tuple[int, int]) -> None:
    name, reason = choose("bf16-emulated", card(capability))
    assert name == "bf16"
    assert "emulated" in reason


@pytest.mark.parametrize("capability", OLD)
def test_b004_tf32_is_dropped_where_there_are_no_units(capability: tuple[int, int]) -> None:
    assert not choose_tf32("auto", "fp16", card(capability)).enabled
    enabled, reason = choose_tf32(True, "fp16", card(capability))
    assert not enabled
    assert reason.startswith("tf32: true has no effect")


def test_cards_older_than_fp16_units_stay_in_fp32() -> None:
    assert choose("auto", card((6, 1))).name == "fp32"


def test_a_cpu_uses_bf16_only_where_it_has_the_instructions() -> None:
    assert choose("auto", cpu(has_bf16=True)).name == "bf16"
    assert choose("auto", cpu(has_bf16=False)).name == "fp32"
    assert "slower" in choose("bf16", cpu(has_bf16=False)).reason


@pytest.mark.parametrize("asked", ["fp32", "fp16"])
@pytest.mark.parametrize("machine", [cpu(has_bf16=False), card((7, 0)), card((9, 0))])
def test_what_was_asked_for_is_taken(asked: str, machine: Machine) -> None:
    assert choose(asked, machine) == (asked, "asked for")


def test_fp32_keeps_full_products_unless_tf32_is_asked_for() -> None:
    assert not choose_tf32("auto", "fp32", card((8, 0))).enabled
    assert not choose_tf32(False, "bf16", card((8, 0))).enabled
    assert not choose_tf32(True, "fp32", cpu(has_bf16=True)).enabled

"""Judging and choosing: fastest that fits, nearest to what was asked, and why others do not."""

import pytest

from launcher.facts import Machine
from launcher.hardware.catalog import Gpu, get
from launcher.plan.candidates import asked_micro, candidates
from launcher.plan.fit import (
    Judged,
    asked,
    faster_that_do_not_fit,
    fastest,
    judge,
    nearest,
    one_a_turn,
    why_not,
)
from launcher.plan.levers import MICRO
from launcher.plan.micro_batch import micro_batches
from launcher.plan.pretend import pretend_machine
from launcher.recipe.schema import Recipe
from tests.plan.cards import LLAMA, recipe, shape


def judged(wanted: Recipe, gpu: Gpu, ranks: int = 1, usable: int | None = None) -> list[Judged]:
    machine: Machine = pretend_machine(gpu.name, ranks)
    found = candidates(wanted, shape(wanted.model.model_name_or_path), machine, ranks)
    return [judge(each, gpu, usable or gpu.usable_bytes) for each in found]


LORA = recipe(activation_checkpointing=True, per_device_train_batch_size=4)
CARD = get("rtx3090")


@pytest.fixture(scope="module")
def found() -> list[Judged]:
    return judged(LORA, CARD)


def test_every_cut_keeps_the_global_batch(found: list[Judged]) -> None:
    cuts = {(each.candidate.setting.micro_batch, each.candidate.setting.accumulation_steps) for each in found}
    assert cuts == {(16, 1), (8, 2), (4, 4), (2, 8), (1, 16)}


def test_what_was_asked_has_no_changes(found: list[Judged]) -> None:
    own = asked(found)
    assert own.candidate.changes == {} and own.candidate.typed == ""
    assert own.candidate.setting.micro_batch == 4


def test_auto_takes_the_fastest_cut_that_fits() -> None:
    free = judged(recipe(activation_checkpointing=True), CARD)
    own = asked(free)
    rows = own.candidate.setting.micro_batch
    assert own.fits and own.candidate.distance == 0
    larger = [x for x in free if not x.candidate.changes and x.candidate.setting.micro_batch > rows]
    assert all(not each.fits or each.seconds >= own.seconds for each in larger)


def test_the_fastest_fits_and_nothing_that_fits_is_faster(found: list[Judged]) -> None:
    best = fastest(found)
    assert best is not None and best.fits
    assert not [each for each in found if each.fits and each.seconds < best.seconds]


def test_the_nearest_of_a_small_card_keeps_the_numbers_where_it_can() -> None:
    tight = judged(LORA, CARD, usable=int(0.97 * asked(judged(LORA, CARD)).needed_bytes))
    assert not asked(tight).fits
    best = nearest(tight)
    assert best is not None and best.fits and [*best.candidate.changes] == [MICRO]


def test_nothing_fits_a_card_of_a_gibibyte() -> None:
    none = judged(recipe(adapter="full"), CARD, usable=2**28)
    assert nearest(none) is None and fastest(none) is None
    assert "over in" in why_not(asked(none))


def test_refused_plans_are_faster_and_say_how_much_is_lacking(found: list[Judged]) -> None:
    best = fastest(found)
    assert best is not None
    for each in faster_that_do_not_fit(found, best):
        assert each.seconds < best.seconds and not each.fits
        assert why_not(each).split(" over in ")[0].endswith("GiB") or "MiB" in why_not(each)


def test_a_turn_is_shown_once_with_its_best_cut(found: list[Judged]) -> None:
    shown = one_a_turn(found)
    keys = [repr({k: v for k, v in each.candidate.changes.items() if k != MICRO}) for each in shown]
    assert len(keys) == len(set(keys))
    assert [each.seconds for each in shown] == sorted(each.seconds for each in shown)


def test_a_bound_that_does_not_divide_is_the_next_divisor() -> None:
    assert asked_micro(recipe(per_device_train_batch_size=6), 16) == 4
    assert asked_micro(recipe(), 16) is None
    assert micro_batches(12) == [12, 6, 4, 3, 2, 1]
    assert micro_batches(512)[0] == 128


def test_old_cards_never_get_bf16() -> None:
    assert {each.candidate.setting.precision for each in judged(recipe(), get("v100_32_pcie"))} == {"fp16"}


def test_several_cards_have_every_backend_that_divides() -> None:
    names = {each.candidate.backend for each in judged(recipe(adapter="full", backend="multi_gpu"), CARD, 4)}
    assert {"multi_gpu", "zero1", "zero2", "zero3", "fsdp2", "zero3_offload", "fsdp2_offload"} <= names
    assert "single_gpu" not in names and LLAMA

"""Bounds, spikes, zeros and advice, from host numbers alone."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from launcher.errors import EXIT_FAILED, EXIT_RESUMABLE
from launcher.facts import Machine
from launcher.precision_torch import LossScale, StepPrecision
from launcher.recipe.training import TrainingOptions
from launcher.train.numbers import Numbers, Stop
from launcher.train.numbers_advice import Ending
from launcher.train.numbers_inspect import Findings, Output
from launcher.train.numbers_spikes import FEWEST, QUIET_STEPS, Spikes
from launcher.train.state import StepRecord


def record(step: int, *, skipped: bool = True, **changes: Any) -> StepRecord:
    values: dict[str, Any] = {
        "loss": math.nan if skipped else 1.0,
        "step_loss": math.nan if skipped else 1.0,
        "share": 0.5,
        "grad_norm": math.nan if skipped else 1.0,
        "loss_scale": 1.0,
        "num_targets": 4,
        "learning_rate": 1e-3,
        "epoch": 0.1,
        "is_logged": True,
        "handed_s": 0.0,
    }
    return StepRecord(step=step, skipped=skipped, **(values | changes))


def numbers(*, fp16: bool = False, **options: Any) -> Numbers:
    recipe = TrainingOptions.model_validate(options)
    return Numbers(recipe, is_scaled=fp16, in_a_row=0, has_updated=False)


def first_stop(found: Numbers, steps: int = 40, **changes: Any) -> Any:
    """(step, kind) of the first reason to end, all steps skipped."""
    for step in range(1, steps + 1):
        given = changes | ({"loss_scale": changes["scale"](step)} if "scale" in changes else {})
        given.pop("scale", None)
        if stop := found.add(record(step, **given)):
            return step, stop.kind
    return None


def test_b067_more_than_eight_skips_in_a_row_end_a_run() -> None:
    assert first_stop(numbers()) == (9, "streak")
    assert first_stop(numbers(max_skipped_steps=3)) == (4, "streak")


def test_b067_a_loss_scale_below_sixteen_ends_a_run() -> None:
    def halved(step: int) -> float:
        return 2.0 ** (16 - step)

    found = numbers(fp16=True, max_skipped_steps=100)
    assert first_stop(found, scale=halved, step_loss=1.0) == (13, "scale")  # 2**3
    assert first_stop(numbers(fp16=True, max_skipped_steps=100, min_loss_scale=1024), scale=halved) == (
        7,
        "scale",
    )


def test_a_finite_step_begins_the_count_again() -> None:
    found = numbers()
    for step in range(1, 60):
        assert found.add(record(step, skipped=step % 9 != 0)) is None
    assert found.in_a_row == 5


def test_stop_at_the_first_step_where_that_is_asked_for() -> None:
    assert first_stop(numbers(non_finite="stop")) == (1, "policy")
    # fp16's overflow with a finite loss is the scale's business; a loss that is not finite is not.
    scaled = numbers(fp16=True, non_finite="stop")
    assert first_stop(scaled, step_loss=1.0, loss_scale=2.0**15) == (9, "streak")
    assert first_stop(numbers(fp16=True, non_finite="stop"), loss_scale=2.0**15) == (1, "policy")


def test_b067_first_fp16_skips_are_the_scale_settling() -> None:
    found = numbers(fp16=True)
    assert found.is_settling(record(1, step_loss=1.0))
    assert not found.is_settling(record(1))
    found.add(record(1, skipped=False))
    assert not found.is_settling(record(1, step_loss=1.0))
    assert not numbers().is_settling(record(1, step_loss=1.0))


def test_a_loss_of_zero_for_eight_steps_is_told_once() -> None:
    found = numbers()
    told = [found.stuck_at_zero(record(step, skipped=False, step_loss=0.0)) for step in range(1, 30)]
    assert told.index("the loss") == 7 and sum(each is not None for each in told) == 1
    assert found.stuck_at_zero(record(30, skipped=False)) is None
    assert found.zeros == 0


def test_gradients_of_zero_are_told_too_where_the_loss_is_not() -> None:
    found = numbers()
    told = [found.stuck_at_zero(record(step, skipped=False, grad_norm=0.0)) for step in range(1, 20)]
    assert told.index("every gradient") == 7 and sum(each is not None for each in told) == 1


def test_windows_without_targets_are_not_counted_as_zeros() -> None:
    found = numbers()
    for step in range(1, 30):
        blind = record(step, skipped=False, step_loss=0.0, grad_norm=0.0, num_targets=0)
        assert found.stuck_at_zero(blind) is None


def noisy(draw: random.Random) -> float:
    return draw.gauss(1.0, 0.1)


def test_a_spike_is_told_with_its_factor_and_its_tail_is_not() -> None:
    draw, spikes = random.Random(0), Spikes()
    assert all(spikes.add(noisy(draw)) is None for _ in range(60))
    found = spikes.add(9.0)
    assert found is not None and found.factor == pytest.approx(9, abs=0.5)
    assert all(spikes.add(8.0) is None for _ in range(QUIET_STEPS - 1))


@pytest.mark.parametrize("seed", range(5))
def test_noise_falling_losses_and_a_loss_that_stands_still_are_no_spikes(seed: int) -> None:
    draw, spikes = random.Random(seed), Spikes()
    assert all(spikes.add(noisy(draw)) is None for _ in range(2000))
    falling = Spikes()
    assert all(falling.add(5 * 0.99**step + draw.random() * 0.1) is None for step in range(500))
    still = Spikes()
    assert all(still.add(2.0 + 1e-6 * draw.random()) is None for _ in range(200))
    assert still.add(2.2) is None


def test_a_median_is_not_moved_by_earlier_spikes_as_a_mean_would_be() -> None:
    draw, spikes = random.Random(1), Spikes()
    told = []
    for step in range(400):
        told.append(spikes.add(30.0 if step > FEWEST and step % 15 == 0 else noisy(draw)) is not None)
    assert sum(told) == len([step for step in range(400) if step > FEWEST and step % 15 == 0])


def output(**changes: Any) -> Output:
    values: dict[str, Any] = {
        "order": 7,
        "module": "model.encoder.layer.1.output.dense",
        "kind": "Linear",
        "dtype": "float16",
        "is_finite": False,
        "largest": 6.1e4,
        "largest_in_fp32": 9.9e5,
        "bad_rows": (1,),
        "input_is_finite": True,
        "input_largest": 12.0,
    }
    return Output(**(values | changes))


def findings(first: Output | None, rank: int = 0, **changes: Any) -> Findings:
    values: dict[str, Any] = {
        "loss_is_finite": first is None,
        "micro_batch": 2,
        "rows": (4, 17, 9),
        "bad_rows": (17,) if first else (),
        "largest": (),
    }
    return Findings(rank=rank, first=first, **(values | changes))


def ending(**changes: Any) -> Ending:
    values: dict[str, Any] = {
        "step": 30,
        "stop": Stop(kind="streak", reason="9 steps in a row"),
        "precision": "fp16",
        "machine": Machine(device="cuda", num_gpus=1, compute_capability=(8, 0)),
        "found": [findings(output())],
        "bad_weights": {},
        "loss_was_finite": False,
        "checkpoint": "checkpoint-20",
        "evidence": Path("runs/job/non_finite/step-30.json"),
        "learning_rate": 1e-3,
    }
    return Ending(**(values | changes))


def test_b067_advice_begins_with_bf16_where_the_card_has_it_else_with_fp32() -> None:
    ampere = ending().advice()
    assert ampere[0] == "training.precision=bf16"
    assert ampere[1] == "training.fp32_modules=encoder.layer.1.output.dense"
    assert ampere[2] == "training.precision=fp32"
    assert "learning_rate=0.0001" in ampere[3] and "warmup" in ampere[3]
    volta = ending(machine=Machine(device="cuda", num_gpus=1, compute_capability=(7, 0))).advice()
    assert volta == ampere[1:]


def test_b067_the_message_names_module_rows_activation_and_checkpoint() -> None:
    said = str(ending().error())
    assert "first module whose output is not finite: model.encoder.layer.1.output.dense (Linear)" in said
    assert "max |activation| 9.9e+05 if it were fp32 (float16 ends at 65504)" in said
    assert "training row 17" in said and "checkpoint-20" in said and "step-30.json" in said
    assert "its own weights finite" in said


def test_the_earliest_module_over_all_ranks_is_named() -> None:
    early = findings(output(order=3, module="model.embeddings"), rank=1)
    assert "model.embeddings" in str(ending(found=[findings(output()), early]).error())
    assert "rank 1" in str(ending(found=[findings(output()), early]).error())


def test_only_a_fault_that_has_passed_asks_for_another_try() -> None:
    passed = ending(found=[findings(None)])
    assert passed.error().exit_code == EXIT_RESUMABLE and "--resume" in passed.advice()[0]
    assert ending().error().exit_code == EXIT_FAILED
    assert ending(found=[findings(None)], checkpoint=None).error().exit_code == EXIT_FAILED
    # Finite loss, gradients not: backward was not repeated, nothing says that it would be finite.
    backward = ending(found=[findings(None, largest=(output(is_finite=True),))], loss_was_finite=True)
    assert backward.error().exit_code == EXIT_FAILED
    assert "gradients overflow on the way back" in str(backward.error())


def test_weights_that_came_broken_are_the_files_fault() -> None:
    advice = ending(bad_weights={"model.a.weight": True}).advice()
    assert "ANOTHER_COPY" in advice[0]


def test_another_precision_goes_on_from_an_fp16_checkpoint_unscaled_and_back() -> None:
    fp16, bf16 = (LossScale(StepPrecision(name=name, device_type="cpu")) for name in ("fp16", "bf16"))
    fp16.update(torch.ones(()))
    bf16.load_state(fp16.state())
    assert float(bf16.scale) == 1.0
    again = LossScale(StepPrecision(name="fp16", device_type="cpu"))
    again.load_state(bf16.state())
    assert float(again.scale) == 2.0**16
    again.load_state({"scale": 1.0, "finite_steps": 3.0})  # as an fp32 run wrote it before
    assert float(again.scale) == 2.0**16
    again.load_state(fp16.state())
    assert float(again.scale) == 2.0**15

"""The verdict: allocated, context and margin against the card."""

from dataclasses import replace

import pytest

from launcher.memory.estimate import estimate
from launcher.memory.fits import fits, needed_bytes
from tests.memory.shapes import full, mistral, shape, sharded, with_lora

GIB = 1 << 30


def test_a_verdict_shows_its_figures() -> None:
    found = estimate(with_lora(mistral()))
    verdict = fits(found, 24 * GIB)
    assert verdict.fits
    assert verdict.needed_bytes == verdict.allocated_bytes + verdict.context_bytes + verdict.margin_bytes
    assert verdict.needed_bytes == needed_bytes(found)
    assert verdict.phase == found.peak.name


@pytest.mark.parametrize("spare", [-1, 0])
def test_what_is_needed_fits_to_the_byte(spare: int) -> None:
    found = estimate(with_lora(mistral()))
    assert fits(found, needed_bytes(found) + spare).fits is (spare >= 0)


def test_short_lived_tensors_need_more_margin_than_long_lived_ones() -> None:
    step = fits(estimate(full(mistral(), seq_len=64, optimizer="adamw_foreach")), 0)
    activations = fits(estimate(with_lora(mistral(), micro_batch=32, seq_len=4096)), 0)
    assert step.phase == "optimizer"
    assert activations.phase == "backward"
    assert activations.margin_bytes / activations.allocated_bytes > step.margin_bytes / step.allocated_bytes


def test_b027_a_save_that_gathers_everything_does_not_fit_where_training_does() -> None:
    model = shape("meta-llama/Llama-2-7b-hf")
    setting = sharded(full(model), num_ranks=8, loads_whole=False)
    assert fits(estimate(setting), 32 * GIB).fits
    refused = fits(estimate(replace(setting, save_gathers=True)), 32 * GIB)
    assert not refused.fits
    assert refused.phase == "save"

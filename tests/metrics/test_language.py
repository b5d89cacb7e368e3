"""Perplexity."""

import math

import pytest

from launcher.metrics.language import perplexity


def test_perplexity_of_uniform_guesses_is_the_vocabulary_size():
    assert perplexity(10 * math.log(50), 10) == pytest.approx(50)


def test_perplexity_beyond_a_float_is_infinite():
    assert perplexity(1e6, 10) == math.inf


def test_perplexity_without_tokens_is_no_number():
    assert math.isnan(perplexity(0.0, 0))


def test_perplexity_of_a_loss_that_is_no_number_is_no_number():
    assert math.isnan(perplexity(math.nan, 3))

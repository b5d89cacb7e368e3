"""Modules kept in fp32 inside a half-precision step."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from launcher.errors import BadValue
from launcher.recipe.training import TrainingOptions
from launcher.train.numbers_fp32 import keep_in_fp32
from tests.launching import metrics
from tests.train.conftest import WriteRecipe
from tests.train.test_numbers_run import Change, enlarge, run, with_weights

__all__ = ["with_weights"]


def test_a_named_layer_computes_in_fp32_under_autocast_and_learns() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    assert keep_in_fp32(model, ["1"]) == ["1"]
    with torch.autocast("cpu", dtype=torch.float16):
        half = model[0](torch.ones(2, 4))
        assert half.dtype is torch.float16
        whole = model[1](half * 1000)
    assert whole.dtype is torch.float32
    whole.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_half_weights_of_a_named_layer_become_fp32() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to(torch.bfloat16)
    keep_in_fp32(model, ["1"])
    assert {parameter.dtype for parameter in model[1].parameters()} == {torch.float32}
    assert model[0].weight.dtype is torch.bfloat16


def test_a_name_that_fits_nothing_is_refused_with_a_near_one() -> None:
    with pytest.raises(BadValue) as caught:
        keep_in_fp32(nn.ModuleDict({"dense": nn.Linear(2, 2)}), ["dens"])
    assert "training.fp32_modules=dense" in str(caught.value)


@pytest.mark.parametrize("written", ["a.dense, b.dense", ["a.dense", "b.dense"]])
def test_names_may_be_written_with_commas(written: object) -> None:
    assert TrainingOptions.model_validate({"fp32_modules": written}).fp32_modules == ("a.dense", "b.dense")


def test_b067_the_advice_as_typed_lets_the_overflowing_run_learn(
    classifier: WriteRecipe, with_weights: Callable[[str, Change], Path]
) -> None:
    """The layer that ends an fp16 run is named; named in the recipe, the same run is finite."""
    model = with_weights("bert", enlarge)
    recipe = classifier(precision="fp16")
    _, error = run(recipe, f"model_name_or_path={model}")
    assert error is not None
    advised = next(word for word in str(error).split() if word.startswith("training.fp32_modules="))
    folder, error = run(recipe, f"model_name_or_path={model}", advised.rstrip(";"))
    assert error is None
    assert [line["skipped_steps"] for line in metrics(folder) if "loss" in line][-1] <= 2

"""Parameter groups against transformers' choice of what decays."""

from pathlib import Path

import pytest
from torch import nn

from launcher.optim.build_torch import build_optimizer, parameter_groups
from tests import tiny


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_decay_spares_biases_and_norms_as_transformers_does(kind: str, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification, Trainer

    model = AutoModelForSequenceClassification.from_pretrained(tiny.write_bert(tmp_path, kind=kind))
    decayed = set(Trainer.get_decay_parameter_names(None, model))
    by_object = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = parameter_groups(model, 0.01)
    assert {by_object[id(p)] for p in groups[0]["params"]} == decayed
    assert groups[0]["weight_decay"] == 0.01 and groups[1]["weight_decay"] == 0.0


def test_frozen_parameters_and_empty_groups_are_left_out() -> None:
    layer = nn.Linear(3, 3)
    layer.bias.requires_grad_(False)
    groups = parameter_groups(layer, 0.1)
    assert [len(group["params"]) for group in groups] == [1]


def test_the_optimizer_takes_the_recipes_numbers() -> None:
    groups = parameter_groups(nn.Linear(3, 3), 0.1)
    made = build_optimizer(groups, learning_rate=3e-4, betas=(0.8, 0.9), epsilon=1e-6, fused=True)
    assert (made.defaults["lr"], made.defaults["betas"], made.defaults["eps"]) == (3e-4, (0.8, 0.9), 1e-6)
    assert made.defaults["fused"]


def test_without_decay_there_is_one_group() -> None:
    groups = parameter_groups(nn.Linear(3, 3), 0.0)
    assert [group["names"] for group in groups] == [["weight", "bias"]]

"""Learning rates by depth and by matrix, on names and on real modules."""

import pytest
from torch import nn

from launcher.optim.build_torch import parameter_groups, rates_of
from launcher.optim.rates import blocks_in, layerwise, second_matrix

BERT = [
    "model.bert.embeddings.word_embeddings.weight",
    "model.bert.encoder.layer.0.output.dense.weight",
    "model.bert.encoder.layer.1.output.dense.weight",
    "model.bert.pooler.dense.weight",
    "model.classifier.weight",
]


def test_the_head_gets_the_whole_rate_and_the_embeddings_least() -> None:
    factor = layerwise(BERT, 0.5)
    assert [factor(name) for name in BERT] == [0.125, 0.25, 0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.transformer.wte.weight", 0.125),
        ("model.transformer.h.1.mlp.c_fc.weight", 0.5),
        ("model.gpt_neox.embed_in.weight", 0.125),
        ("model.model.norm.weight", 1.0),
        ("model.lm_head.weight", 1.0),
        ("model.base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight", 0.25),
    ],
)
def test_depth_in_other_families(name: str, expected: float) -> None:
    assert layerwise([*BERT, name], 0.5)(name) == expected


def test_blocks_are_counted_by_their_index() -> None:
    assert blocks_in(BERT) == 2 and blocks_in(["classifier.weight"]) == 0


def test_lora_plus_speeds_the_second_matrix_only() -> None:
    factor = second_matrix(16)
    assert factor("a.lora_A.default.weight") == 1 and factor("a.lora_B.default.weight") == 16


def test_b019_no_group_is_empty_where_whole_layers_are_frozen() -> None:
    model = nn.ModuleDict({"embeddings": nn.Embedding(4, 3), "classifier": nn.Linear(3, 2)})
    model["embeddings"].requires_grad_(False)
    names = [name for name, _ in model.named_parameters()]
    groups = parameter_groups(model, 0.1, rates_of(model, 1e-3, [layerwise(names, 0.5)]))
    assert [group["names"] for group in groups] == [["classifier.weight"], ["classifier.bias"]]
    assert {group["lr"] for group in groups} == {1e-3}


def test_one_rate_needs_no_rates() -> None:
    model = nn.Linear(3, 2)
    assert rates_of(model, 1e-3, []) is None
    assert all("lr" not in group for group in parameter_groups(model, 0.1))

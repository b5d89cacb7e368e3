"""Intents and names against the module trees of real architectures, on the meta device."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from launcher.adapters.peft_torch import linear_names
from launcher.adapters.targets import outputs, resolve_targets
from launcher.errors import RecipeError

SMALL = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
FAMILIES: dict[str, tuple[Any, dict[str, Any], set[str]]] = {
    "bert": (AutoModelForSequenceClassification, SMALL, {"query", "key", "value", "dense"}),
    "roberta": (AutoModelForSequenceClassification, SMALL, {"query", "key", "value", "dense"}),
    "bloom": (
        AutoModelForCausalLM,
        {"hidden_size": 64, "n_layer": 2, "n_head": 4},
        {"query_key_value", "dense"},
    ),
    "gpt2": (AutoModelForCausalLM, {"n_embd": 64, "n_layer": 2, "n_head": 4}, {"c_attn", "c_proj"}),
    "gpt_neox": (AutoModelForCausalLM, SMALL, {"query_key_value", "dense"}),
    "llama": (
        AutoModelForCausalLM,
        SMALL | {"num_key_value_heads": 2},
        {"q_proj", "k_proj", "v_proj", "o_proj"},
    ),
    "qwen2": (
        AutoModelForCausalLM,
        SMALL | {"num_key_value_heads": 2},
        {"q_proj", "k_proj", "v_proj", "o_proj"},
    ),
    "mistral": (
        AutoModelForCausalLM,
        SMALL | {"num_key_value_heads": 2},
        {"q_proj", "k_proj", "v_proj", "o_proj"},
    ),
}
SEPARATE, FUSED = {"q_proj", "k_proj", "v_proj", "o_proj"}, {"query_key_value", "dense"}
FAMILIES |= dict.fromkeys(("albert", "electra", "ernie"), FAMILIES["bert"])
FAMILIES |= {
    "distilbert": (
        AutoModelForSequenceClassification,
        {"dim": 64, "hidden_dim": 64, "n_layers": 2, "n_heads": 4},
        {"q_lin", "k_lin", "v_lin", "out_lin"},
    ),
    "deberta-v2": (
        AutoModelForSequenceClassification,
        SMALL,
        {"query_proj", "key_proj", "value_proj", "dense"},
    ),
    "falcon": (AutoModelForCausalLM, SMALL, FUSED),
    "phi3": (AutoModelForCausalLM, SMALL | {"pad_token_id": 0}, {"qkv_proj", "o_proj"}),
}
FAMILIES |= dict.fromkeys(
    ("qwen3", "gemma", "gemma2", "gemma3_text", "glm", "glm4", "olmo2", "granite"),
    (AutoModelForCausalLM, SMALL | {"num_key_value_heads": 2, "pad_token_id": 0}, SEPARATE),
)


def names_of(kind: str) -> list[str]:
    family, sizes, _ = FAMILIES[kind]
    with torch.device("meta"):
        return linear_names(family.from_config(AutoConfig.for_model(kind, **sizes, vocab_size=128)))


@pytest.mark.parametrize("kind", FAMILIES)
def test_b012_attention_resolves_in_every_family(kind: str) -> None:
    found = resolve_targets("attention", names_of(kind))
    assert {name.rsplit(".", 1)[-1] for name in found} == FAMILIES[kind][2]
    assert all(".mlp." not in name and "intermediate" not in name for name in found)
    # bert's output.dense is the MLP's where it does not stand behind attention
    assert all("attention" in name or "attn" in name for name in found)


@pytest.mark.parametrize("kind", FAMILIES)
def test_b012_attention_and_mlp_make_up_all_linear_layers_of_the_blocks(kind: str) -> None:
    names = names_of(kind)
    parts = [resolve_targets(intent, names) for intent in ("attention", "mlp", "all-linear")]
    assert sorted(parts[0] + parts[1]) == sorted(parts[2])
    assert not any(word in name for name in parts[2] for word in ("lm_head", "classifier", "pooler", "score"))


def test_b012_names_that_do_not_exist_are_refused_with_those_that_do() -> None:
    with pytest.raises(RecipeError) as caught:
        resolve_targets(("q_proj", "v_proj"), names_of("bloom"))
    assert "query_key_value" in str(caught.value) and "q_proj" in str(caught.value)


def test_b012_a_slip_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(RecipeError, match="lora_target_modules=query_key_value"):
        resolve_targets(("query_key_values",), names_of("bloom"))


def test_a_list_of_names_takes_exactly_those() -> None:
    found = resolve_targets(("q_proj",), names_of("llama"))
    assert found == ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (["self_attn.o_proj", "self_attn.qkv_proj", "mlp.gate_up_proj", "mlp.down_proj"], (0, 3)),  # Phi-3
        (["self_attn.W_pack", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj"], (1, 3)),
        (["attn.c_attn", "attn.c_proj", "mlp.w1", "mlp.w2", "mlp.c_proj"], (1, 4)),  # Qwen
        (["attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"], (1, 3)),
        (["attention.self.query", "attention.output.dense", "intermediate.dense", "output.dense"], (1, 3)),
        (["attn.Wqkv", "attn.Wo", "mlp.Wi", "mlp.Wo"], (1, 3)),  # ModernBERT
        (["attention.odd_in", "attention.odd_out", "mlp.odd_in", "mlp.odd_out"], (1, 3)),
    ],
)
def test_what_a_sublayer_puts_out_is_known_by_name_or_place(
    layers: list[str], expected: tuple[int, int]
) -> None:
    names = [f"model.layers.{block}.{layer}" for block in range(2) for layer in layers]
    wanted = [f"model.layers.{block}.{layers[index]}" for block in range(2) for index in expected]
    assert outputs(names, attention=True, mlp=True) == wanted
    assert outputs(names, attention=False, mlp=True) == wanted[1::2]

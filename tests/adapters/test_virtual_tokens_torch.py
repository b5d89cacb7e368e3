"""Vectors in front of the input on families whose embeddings or names of sizes are their own."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from launcher.adapters.options import METHODS
from launcher.registry import load_attribute

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
MODELS: dict[str, tuple[str, dict[str, Any], int]] = {
    "distilbert": ("classification", {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4}, 32),
    "electra": ("classification", SMALL | {"embedding_size": 16}, 16),
    "albert": ("classification", SMALL | {"embedding_size": 16}, 16),
    "deberta-v2": ("classification", SMALL, 32),
    "roberta": ("classification", SMALL, 32),
    "opt": (
        "causal_lm",
        {"hidden_size": 32, "word_embed_proj_dim": 16, "ffn_dim": 64, "num_hidden_layers": 2}
        | {"num_attention_heads": 4},
        16,
    ),
    "gpt2": ("causal_lm", {"n_embd": 32, "n_layer": 2, "n_head": 4}, 32),
}
AUTO = {"classification": AutoModelForSequenceClassification, "causal_lm": AutoModelForCausalLM}
IDS = torch.tensor([[5, 9, 12, 7], [6, 11, 9, 10]])


@pytest.mark.parametrize("method", ["prompt", "p_tuning"])
@pytest.mark.parametrize("kind", MODELS)
def test_vectors_are_as_wide_as_embeddings_and_learn(kind: str, method: str) -> None:
    task, sizes, width = MODELS[kind]
    torch.manual_seed(1)
    config = AutoConfig.for_model(kind, **sizes, vocab_size=40, pad_token_id=0, max_position_embeddings=64)
    found = METHODS.get(method)
    options = found.options.model_validate({"method": method, "num_virtual_tokens": 3})
    model: Any = load_attribute(found.apply)(AUTO[task].from_config(config), options, task=task)
    assert model.active_peft_config.token_dim == width
    labels = torch.tensor([0, 1]) if task == "classification" else IDS
    model(input_ids=IDS, attention_mask=torch.ones_like(IDS), labels=labels).loss.backward()
    vectors = [each for name, each in model.named_parameters() if "prompt_encoder" in name]
    assert vectors and all(each.grad is not None and each.grad.abs().max() > 0 for each in vectors)


@pytest.mark.parametrize(
    "options", [{"method": "prompt"}, {"method": "prefix"}, {"method": "prefix", "prefix_projection": True}]
)
def test_vectors_begin_as_small_as_the_models_own_weights(options: dict[str, Any]) -> None:
    """As large as PEFT draws them, keys and values drown the text: and no two may be equal."""
    torch.manual_seed(1)
    task, sizes, _ = MODELS["gpt2"]
    config = AutoConfig.for_model("gpt2", **sizes, vocab_size=40, initializer_range=0.01)
    found = METHODS.get(options["method"])
    model: Any = load_attribute(found.apply)(
        AUTO[task].from_config(config),
        found.options.model_validate(options | {"num_virtual_tokens": 8}),
        task=task,
    )
    vectors = model.prompt_encoder["default"](torch.arange(8))
    assert 0 < vectors.std() < 0.02
    assert len(vectors.unique(dim=0)) == 8

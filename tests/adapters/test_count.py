"""Counts from the shape equal what PEFT really adds, on the real architectures on the meta device."""

from typing import Any

import pytest

from launcher.adapters.count import AdapterCount, count, linear_names
from launcher.adapters.lora import LoraOptions
from launcher.adapters.options import METHODS
from launcher.errors import RecipeError
from launcher.models.catalogue import config
from launcher.models.read_shape import shape_of
from launcher.models.shape import ModelShape
from launcher.registry import load_attribute
from tests.models import meta

MODELS = {
    "llama": ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "causal_lm"),
    "qwen2": ("Qwen/Qwen2.5-0.5B", "causal_lm"),
    "qwen3": ("Qwen/Qwen3-0.6B", "causal_lm"),
    "mistral": ("mistralai/Mistral-7B-v0.1", "causal_lm"),
    "gemma": ("google/gemma-2b", "causal_lm"),
    "gemma2": ("google/gemma-2-2b", "causal_lm"),
    "gemma3_text": ("google/gemma-3-270m", "causal_lm"),
    "gpt2": ("openai-community/gpt2", "causal_lm"),
    "gpt_neox": ("EleutherAI/pythia-160m", "causal_lm"),
    "bloom": ("bigscience/bloom-560m", "causal_lm"),
    "opt": ("facebook/opt-125m", "causal_lm"),
    "phi": ("microsoft/phi-2", "causal_lm"),
    "phi3": ("microsoft/phi-4", "causal_lm"),
    "granite": ("ibm-granite/granite-3.1-2b-base", "causal_lm"),
    "olmo2": ("allenai/OLMo-2-1124-7B", "causal_lm"),
    "gpt_bigcode": ("bigcode/gpt_bigcode-santacoder", "causal_lm"),
    "mixtral": ("mistralai/Mixtral-8x7B-v0.1", "causal_lm"),
    "llama-classifier": ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "classification"),
    "bert": ("google-bert/bert-base-uncased", "classification"),
    "roberta": ("FacebookAI/roberta-base", "classification"),
    "xlm-roberta": ("FacebookAI/xlm-roberta-base", "classification"),
    "modernbert": ("answerdotai/ModernBERT-base", "classification"),
    "distilbert": ("distilbert/distilbert-base-uncased", "classification"),
    "deberta-v2": ("microsoft/deberta-v3-small", "classification"),
    "electra": ("google/electra-base-discriminator", "classification"),
    "electra-small": ("google/electra-small-discriminator", "classification"),
    "opt-350m": ("facebook/opt-350m", "causal_lm"),
}
METHOD_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "full": ("full", {}),
    "lora-attention": ("lora", {"lora_r": 8}),
    "lora-all": ("lora", {"lora_r": 3, "lora_target_modules": "all-linear"}),
    "lora-dora": ("lora", {"lora_r": 4, "lora_target_modules": "all-linear", "use_dora": True}),
    "houlsby": ("bottleneck", {"bottleneck_size": 8}),
    "pfeiffer": ("bottleneck", {"bottleneck_size": 8, "bottleneck_placement": "pfeiffer"}),
    "ia3": ("ia3", {}),
    "prompt": ("prompt", {"num_virtual_tokens": 7}),
    "p_tuning": ("p_tuning", {"num_virtual_tokens": 7, "encoder_hidden_size": 24}),
    "prefix": ("prefix", {"num_virtual_tokens": 7}),
    "prefix-projected": (
        "prefix",
        {"num_virtual_tokens": 7, "prefix_projection": True, "encoder_hidden_size": 24},
    ),
}
LAYERS = 2
# A prefix needs a decoder's key-value cache.
NO_CACHE = (
    "bert",
    "roberta",
    "xlm-roberta",
    "modernbert",
    "distilbert",
    "deberta-v2",
    "electra",
    "electra-small",
)
ONCE = ("full", "lora-attention")  # Nothing in them depends on the family beyond what the others show.
MAIN = tuple(method for method in METHOD_OPTIONS if method not in ONCE)
CELLS = [
    *(("llama", method) for method in ONCE),
    *(("roberta", method) for method in ONCE),
] + [
    (model, method)
    for model in MODELS
    for method in MAIN
    if not (model in NO_CACHE and method.startswith("prefix"))
    and (model, method) != ("mixtral", "pfeiffer")  # refused: experts stand where its layer would be
]


def made(model: str, method: str) -> tuple[ModelShape, AdapterCount, Any]:
    """Shape and count, and the real module tree with the real adapter, without weights."""
    hub_id, task = MODELS[model]
    values = config(hub_id)
    assert values is not None
    names = [name for name in meta.DEPTH_NAMES if name in values]
    shape = shape_of(values | dict.fromkeys(names, LAYERS), task=task, num_labels=3)
    kind, chosen = METHOD_OPTIONS[method]
    options = METHODS.get(kind).options(method=kind, **chosen)
    module = meta.build(values, task, num_layers=LAYERS, num_labels=3)
    wrapped = load_attribute(METHODS.get(kind).apply)(module, options, task=task)
    return shape, count(options, shape), wrapped


def trained(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


@pytest.mark.filterwarnings("ignore:fan_in_fan_out:UserWarning")
@pytest.mark.parametrize(("model", "method"), CELLS)
def test_what_trains_is_counted(model: str, method: str) -> None:
    shape, counted, wrapped = made(model, method)
    assert counted.num_trained == trained(wrapped)
    everything = sum(parameter.numel() for parameter in wrapped.parameters())
    added = 0 if method == "full" else counted.num_trained
    assert everything == shape.num_params + added


def test_b012_targets_that_an_architecture_lacks_are_refused_with_its_own() -> None:
    values = config("openai-community/gpt2")
    assert values is not None
    options = LoraOptions(method="lora", lora_target_modules=("q_proj",))
    with pytest.raises(RecipeError, match="c_attn"):
        count(options, shape_of(values))


def test_a_method_that_goes_behind_the_mlp_is_refused_where_experts_stand_in_its_place() -> None:
    options = METHODS.get("bottleneck").options(method="bottleneck", bottleneck_placement="pfeiffer")
    with pytest.raises(RecipeError, match="self_attn.o_proj"):
        count(options, shape_of({"model_type": "mixtral"}))


@pytest.mark.parametrize("model", NO_CACHE)
def test_b018_a_prefix_in_an_encoder_is_refused_before_anything_is_loaded(model: str) -> None:
    values = config(MODELS[model][0])
    assert values is not None
    options = METHODS.get("prefix").options(method="prefix")
    with pytest.raises(RecipeError, match="key-value cache"):
        count(options, shape_of(values, task="classification"))


@pytest.mark.parametrize(
    ("hub_id", "rank", "expected"),
    [
        ("mistralai/Mistral-7B-v0.1", 16, 13_631_488),
        ("meta-llama/Llama-2-70b-hf", 16, 65_536_000),
        ("Qwen/Qwen2.5-7B", 16, 10_092_544),
        ("HuggingFaceTB/SmolLM2-1.7B", 32, 12_582_912),
        ("deepseek-ai/deepseek-coder-1.3b-base", 16, 6_291_456),
    ],
)
def test_published_lora_counts_are_met(hub_id: str, rank: int, expected: int) -> None:
    values = config(hub_id)
    assert values is not None
    counted = count(LoraOptions(method="lora", lora_r=rank), shape_of(values))
    assert counted.num_params == expected and counted.rank == rank
    assert counted.targets == tuple(f"self_attn.{letter}_proj" for letter in "qkvo")


def test_layers_named_one_by_one_are_counted_one_by_one() -> None:
    values = config("TinyLlama/TinyLlama-1.1B-Chat-v1.0")
    assert values is not None
    shape = shape_of(values)
    some = ("model.layers.0.self_attn.q_proj", "model.layers.21.self_attn.q_proj")
    counted = count(LoraOptions(method="lora", lora_r=8, lora_target_modules=some), shape)
    assert (counted.num_targets, counted.targets) == (2, ("self_attn.q_proj",))
    assert counted.num_params == 2 * 8 * (2048 + 2048)
    assert len(linear_names(shape)) == 22 * 7


def test_every_registered_method_can_be_counted() -> None:
    shape = shape_of({"model_type": "llama"})
    for method in METHODS:
        assert count(method.options(method=method.name), shape).num_trained > 0

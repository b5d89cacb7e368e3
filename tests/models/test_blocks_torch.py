"""Which modules are a model's blocks, on the meta device: nothing is downloaded or allocated."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from launcher.errors import UnknownSetting
from launcher.models.blocks_torch import block_class_names, block_modules

SMALL = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
FAMILIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "bert": ("BertLayer", SMALL | {"vocab_size": 50}, False),
    "roberta": ("RobertaLayer", SMALL | {"vocab_size": 50}, False),
    "llama": ("LlamaDecoderLayer", SMALL | {"vocab_size": 50, "num_key_value_heads": 2}, True),
    "qwen2": ("Qwen2DecoderLayer", SMALL | {"vocab_size": 50, "num_key_value_heads": 2}, True),
    "bloom": ("BloomBlock", {"hidden_size": 16, "n_layer": 3, "n_head": 2, "vocab_size": 50}, True),
    "gpt2": ("GPT2Block", {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 50}, True),
}


def meta(family: str) -> nn.Module:
    """A model of that family without any weights."""
    _, sizes, is_generator = FAMILIES[family]
    kind = AutoModelForCausalLM if is_generator else AutoModelForSequenceClassification
    with torch.device("meta"):
        model: nn.Module = kind.from_config(AutoConfig.for_model(family, **sizes))
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_b015_the_blocks_are_derived_from_the_model(family: str) -> None:
    model = meta(family)
    name = FAMILIES[family][0]
    assert name in block_class_names(model)
    blocks = block_modules(model)
    assert [type(block).__name__ for block in blocks].count(name) == 3
    assert block_modules(model, (name,)) == [each for each in blocks if type(each).__name__ == name]


@pytest.mark.parametrize(
    ("family", "wrong", "offered"),
    [
        ("llama", "LLaMADecoderLayer", "LlamaDecoderLayer"),
        ("bert", "GPT2Block", "BertLayer"),
        ("roberta", "BertLayer", "RobertaLayer"),
        ("bloom", "BloomBlocks", "BloomBlock"),
        ("qwen2", "LlamaDecoderLayer", "Qwen2DecoderLayer"),
        ("gpt2", "gpt2block", "GPT2Block"),
    ],
)
def test_b015_a_class_of_another_model_is_refused_with_this_ones(
    family: str, wrong: str, offered: str
) -> None:
    with pytest.raises(UnknownSetting) as caught:
        block_modules(meta(family), (FAMILIES[family][0], wrong))
    problem = caught.value.problems[0]
    assert wrong in problem.what
    assert offered in problem.right and offered in problem.type


def test_b015_several_classes_are_wrapped_without_blocks_inside_blocks() -> None:
    found = block_modules(meta("bert"), ("BertLayer", "BertPooler", "BertAttention"))
    assert [type(each).__name__ for each in found] == ["BertLayer"] * 3 + ["BertPooler"]


def test_without_a_word_from_the_model_the_longest_list_of_equal_modules_is_taken() -> None:
    class Block(nn.Linear):
        """What repeats."""

    model = nn.Sequential(
        nn.ModuleList([Block(2, 2) for _ in range(4)]), nn.ModuleList([nn.Linear(2, 2)] * 2)
    )
    assert block_class_names(model) == ("Block",)
    assert block_class_names(nn.Linear(2, 2)) == ()

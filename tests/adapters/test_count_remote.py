"""Families whose classes are remote code: their published layers, rebuilt, under PEFT's own modules.

Names and widths are those that the families' repositories print of a block; a test of shapes holds the
configurations' readers to them.
"""

from typing import Any

import pytest
import torch
from torch import nn

from launcher.adapters.count import count
from launcher.adapters.options import METHODS
from launcher.models.catalogue import config
from launcher.models.read_shape import shape_of
from launcher.registry import load_attribute

LAYERS = 2
# hub id: where the blocks lie, and each linear layer of one (inputs, outputs)
BLOCKS: dict[str, tuple[str, dict[str, tuple[int, int]]]] = {
    "THUDM/chatglm3-6b": (
        "transformer.encoder.layers",
        {
            "self_attention.query_key_value": (4096, 4608),
            "self_attention.dense": (4096, 4096),
            "mlp.dense_h_to_4h": (4096, 27392),
            "mlp.dense_4h_to_h": (13696, 4096),
        },
    ),
    "Qwen/Qwen-7B": (
        "transformer.h",
        {
            "attn.c_attn": (4096, 12288),
            "attn.c_proj": (4096, 4096),
            "mlp.w1": (4096, 11008),
            "mlp.w2": (4096, 11008),
            "mlp.c_proj": (11008, 4096),
        },
    ),
    "baichuan-inc/Baichuan2-7B-Base": (
        "model.layers",
        {
            "self_attn.W_pack": (4096, 12288),
            "self_attn.o_proj": (4096, 4096),
            "mlp.gate_proj": (4096, 11008),
            "mlp.down_proj": (11008, 4096),
            "mlp.up_proj": (4096, 11008),
        },
    ),
    "internlm/internlm2-7b": (
        "model.layers",
        {
            "attention.wqkv": (4096, 6144),
            "attention.wo": (4096, 4096),
            "feed_forward.w1": (4096, 14336),
            "feed_forward.w3": (4096, 14336),
            "feed_forward.w2": (14336, 4096),
        },
    ),
}
METHOD_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora-attention": ("lora", {"lora_r": 8}),
    "lora-all": ("lora", {"lora_r": 3, "lora_target_modules": "all-linear"}),
    "lora-dora": ("lora", {"lora_r": 4, "lora_target_modules": "mlp", "use_dora": True}),
    "houlsby": ("bottleneck", {"bottleneck_size": 8}),
    "pfeiffer": ("bottleneck", {"bottleneck_size": 8, "bottleneck_placement": "pfeiffer"}),
    "ia3": ("ia3", {}),
}
# What carries an adapter behind attention and MLP: the projections back to the hidden width.
OUTPUTS = {
    "THUDM/chatglm3-6b": {"self_attention.dense", "mlp.dense_4h_to_h"},
    "Qwen/Qwen-7B": {"attn.c_proj", "mlp.c_proj"},
    "baichuan-inc/Baichuan2-7B-Base": {"self_attn.o_proj", "mlp.down_proj"},
    "internlm/internlm2-7b": {"attention.wo", "feed_forward.w2"},
}


class Tree(nn.Module):
    """A module of modules; what PEFT asks of a causal LM is there and never called."""

    def put(self, path: str, layer: nn.Module) -> None:
        """Under its dotted path, with what must stand above it."""
        head, _, rest = path.partition(".")
        if not rest:
            self.add_module(head, layer)
            return
        if not hasattr(self, head):
            self.add_module(head, Tree())
        child = getattr(self, head)
        assert isinstance(child, Tree)
        child.put(rest, layer)

    def prepare_inputs_for_generation(self) -> None:
        """PEFT wraps it."""


def tree(hub_id: str) -> Tree:
    place, layers = BLOCKS[hub_id]
    found = Tree()
    with torch.device("meta"):
        for index in range(LAYERS):
            for name, (inputs, outputs) in layers.items():
                found.put(f"{place}.{index}.{name}", nn.Linear(inputs, outputs, bias=False))
    return found


@pytest.mark.parametrize("method", METHOD_OPTIONS)
@pytest.mark.parametrize("hub_id", BLOCKS)
def test_what_trains_in_fused_projections_is_counted(hub_id: str, method: str) -> None:
    values = config(hub_id)
    assert values is not None
    depth = "num_layers" if "num_layers" in values else "num_hidden_layers"
    shape = shape_of(values | {depth: LAYERS})
    kind, chosen = METHOD_OPTIONS[method]
    options = METHODS.get(kind).options(method=kind, **chosen)
    wrapped = load_attribute(METHODS.get(kind).apply)(tree(hub_id), options, task="causal_lm")
    trained = sum(each.numel() for each in wrapped.parameters() if each.requires_grad)
    counted = count(options, shape)
    assert counted.num_trained == trained > 0
    if method == "houlsby":
        assert set(counted.targets) == OUTPUTS[hub_id]


@pytest.mark.parametrize("hub_id", BLOCKS)
def test_the_readers_find_the_published_layers(hub_id: str) -> None:
    values = config(hub_id)
    assert values is not None
    shape = shape_of(values)
    assert shape.blocks_path == BLOCKS[hub_id][0]
    assert {each.name: (each.in_features, each.out_features) for each in shape.linears} == BLOCKS[hub_id][1]

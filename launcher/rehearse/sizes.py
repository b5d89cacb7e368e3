"""From a model's sizes to tiny ones of the same kind: few layers, narrow, query heads still grouped."""

from collections.abc import Mapping
from typing import Any

NUM_LAYERS, WIDTH, MLP_WIDTH, NUM_EXPERTS = 2, 64, 128, 4
_MOST_GROUPED = 8
# bitsandbytes 0.50 packs 4-bit weights for a CPU in blocks of so many rows; keys and values have the fewest.
_ROWS_PACKED = 32
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "word_embed_proj_dim")
_MLPS = ("intermediate_size", "ffn_dim", "n_inner", "d_ff", "hidden_dim", "ffn_hidden_size")
_EXPERT_MLPS = ("moe_intermediate_size", "shared_expert_intermediate_size")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_HEAD_WIDTHS = ("head_dim", "kv_channels", "d_kv")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
# What a configuration derives from its depth, or what belongs to the real weights.
_DERIVED = ("layer_types", "max_window_layers", "no_rope_layers", "mlp_layer_types", "mlp_only_layers")
_OF_THE_WEIGHTS = ("quantization_config", "architectures", "dtype", "torch_dtype", "_name_or_path")
_OF_THE_TASK = ("id2label", "label2id", "num_labels", "problem_type", "transformers_version")


def tiny(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a configuration with every size made small; `fields` use the model's own names."""
    dropped = (*_DERIVED, *_OF_THE_WEIGHTS, *_OF_THE_TASK)
    kept = {key: value for key, value in fields.items() if key not in dropped}
    num_heads, num_key_values = heads(_first(fields, _HEADS), _first(fields, _KEY_VALUE_HEADS))
    step = _ROWS_PACKED // num_key_values
    head_width = -(-WIDTH // (num_heads * step)) * step
    sizes: dict[tuple[str, ...], int] = {
        _LAYERS: NUM_LAYERS,
        _WIDTHS: num_heads * head_width,
        _MLPS: MLP_WIDTH,
        _EXPERT_MLPS: MLP_WIDTH // 2,
        _HEADS: num_heads,
        _KEY_VALUE_HEADS: num_key_values,
        _HEAD_WIDTHS: head_width,
        _EXPERTS: NUM_EXPERTS,
    }
    for names, size in sizes.items():
        kept |= {name: size for name in names if isinstance(kept.get(name), int)}
    return kept


def heads(num_heads: int | None, num_key_values: int | None) -> tuple[int, int]:
    """Few heads in the same proportion: (query heads, key-value heads)."""
    if not num_heads or not num_key_values or num_key_values >= num_heads:
        return 4, 4
    few = 1 if num_key_values == 1 else 2
    return few * min(num_heads // num_key_values, _MOST_GROUPED), few


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((fields[name] for name in names if isinstance(fields.get(name), int)), None)

"""What each family's configuration class says where a saved config.json says nothing.

Values of transformers 5.24's configuration classes, only the facts that a shape needs. A test compares
every one of them with the installed classes.
"""

from typing import Any

_DECODER: dict[str, Any] = {
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "attention_dropout": 0.0,
}
_ENCODER: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "tie_word_embeddings": True,
}

DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": _DECODER
    | {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "max_position_embeddings": 2048,
        "attention_bias": False,
        "mlp_bias": False,
    },
    "mistral": _DECODER
    | {
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
    },
    "qwen2": _DECODER
    | {
        "vocab_size": 151936,
        "hidden_size": 4096,
        "intermediate_size": 22016,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "max_position_embeddings": 32768,
    },
    "bert": _ENCODER | {"vocab_size": 30522, "pad_token_id": 0},
    "roberta": _ENCODER | {"vocab_size": 50265, "pad_token_id": 1},
}

"""ModernBERT: an encoder with rotary positions, norms before each sublayer and a gated MLP, without biases.

The first block has no norm before attention: the embedding's norm, counted as that block's, takes its place,
so that every block counts alike.
"""

from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.architectures.encoder import refuse_language_model
from launcher.models.shape import LinearShape, ModelShape


def _linears(facts: ConfigFacts, hidden: int, inner: int) -> tuple[LinearShape, ...]:
    on_attention, on_mlp = facts.flag("attention_bias"), facts.flag("mlp_bias")
    sizes = (
        ("attn.Wqkv", hidden, 3 * hidden),
        ("attn.Wo", hidden, hidden),
        ("mlp.Wi", hidden, 2 * inner),
        ("mlp.Wo", inner, hidden),
    )
    return tuple(
        LinearShape(
            name=name,
            in_features=width,
            out_features=out,
            bias=on_attention if name.startswith("attn") else on_mlp,
            kind="attention" if name.startswith("attn") else "mlp",
        )
        for name, width, out in sizes
    )


def modernbert(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """The shape of a ModernBERT classifier. Raises CannotTell for a language model: it has none."""
    refuse_language_model(facts, task)
    hidden, inner = facts.size("hidden_size"), facts.size("intermediate_size")
    heads, norm = facts.size("num_attention_heads"), hidden * (2 if facts.flag("norm_bias") else 1)
    classifier = hidden * num_labels + num_labels
    dense = hidden * hidden + (hidden if facts.flag("classifier_bias") else 0)
    return ModelShape(
        model_type=facts.model_type,
        task=task,
        is_decoder=False,
        num_layers=facts.size("num_hidden_layers"),
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=hidden // heads,
        intermediate_size=inner,
        vocab_size=facts.size("vocab_size"),
        max_positions=facts.size("max_position_embeddings"),
        tied=facts.flag("tie_word_embeddings"),
        gated_mlp=True,
        activation=facts.text("hidden_activation"),
        norm="layer",
        positions="rope",
        linears=_linears(facts, hidden, inner),
        block_other_params=2 * norm,
        word_embedding_params=facts.size("vocab_size") * hidden,
        other_embedding_params=0,
        final_norm_params=norm,
        head_params=dense + norm + classifier,
        num_labels=num_labels,
        classifier_params=classifier,
        blocks_path="model.layers",
        block_class="ModernBertEncoderLayer",
        hidden_dropout=facts.share("mlp_dropout"),
        attention_dropout=facts.share("attention_dropout"),
        embedding_dropout=facts.share("embedding_dropout"),
    )

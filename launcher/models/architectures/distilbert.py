"""DistilBERT: BERT's blocks under other names, half as many, without token types and pooler."""

from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.architectures.encoder import linear_params, refuse_language_model
from launcher.models.shape import LinearShape, ModelShape


def _linears(hidden: int, inner: int) -> tuple[LinearShape, ...]:
    attention = tuple(
        LinearShape(
            name=f"attention.{name}", in_features=hidden, out_features=hidden, bias=True, kind="attention"
        )
        for name in ("q_lin", "k_lin", "v_lin", "out_lin")
    )
    up = LinearShape(name="ffn.lin1", in_features=hidden, out_features=inner, bias=True, kind="mlp")
    down = LinearShape(name="ffn.lin2", in_features=inner, out_features=hidden, bias=True, kind="mlp")
    return (*attention, up, down)


def distilbert(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """The shape of a DistilBERT classifier. Raises CannotTell for a language model: it has none."""
    refuse_language_model(facts, task)
    hidden, inner = facts.size("dim", "hidden_size"), facts.size("hidden_dim")
    heads, positions = facts.size("n_heads", "num_attention_heads"), facts.size("max_position_embeddings")
    # Adapters keep every module whose name ends in "classifier": the layer before it, too.
    classifier = linear_params(hidden, hidden) + linear_params(hidden, num_labels)
    return ModelShape(
        model_type=facts.model_type,
        task=task,
        is_decoder=False,
        num_layers=facts.size("n_layers", "num_hidden_layers"),
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=hidden // heads,
        intermediate_size=inner,
        vocab_size=facts.size("vocab_size"),
        max_positions=positions,
        tied=facts.flag("tie_word_embeddings"),
        gated_mlp=False,
        activation=facts.text("activation"),
        norm="layer",
        positions="learned",
        linears=_linears(hidden, inner),
        block_other_params=4 * hidden,
        word_embedding_params=facts.size("vocab_size") * hidden,
        other_embedding_params=(positions + 2) * hidden,
        final_norm_params=0,
        head_params=classifier,
        num_labels=num_labels,
        classifier_params=classifier,
        blocks_path="distilbert.transformer.layer",
        block_class="TransformerBlock",
        hidden_dropout=facts.share("dropout"),
        attention_dropout=facts.share("attention_dropout"),
        embedding_dropout=facts.share("dropout"),
    )

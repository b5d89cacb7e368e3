"""DeBERTa v2 and v3: BERT's blocks with disentangled attention over relative positions, eager only.

The relative positions are one table for all blocks; where keys are shared (v3) it needs no matrices.
"""

from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.architectures.encoder import linear_params, refuse_language_model
from launcher.models.shape import LinearShape, ModelShape


def _attention_names(facts: ConfigFacts) -> list[str]:
    """The projections of one block. Relative ones exist only where keys are not shared."""
    names = ["query_proj", "key_proj", "value_proj"]
    if _is_relative(facts) and not (facts.has("share_att_key") and facts.flag("share_att_key")):
        kinds = facts.words("pos_att_type")
        names += ["pos_key_proj"] if "c2p" in kinds else []
        names += ["pos_query_proj"] if "p2c" in kinds else []
    return [f"self.{name}" for name in names]


def _is_relative(facts: ConfigFacts) -> bool:
    return facts.flag("relative_attention")


def _linears(facts: ConfigFacts, hidden: int, inner: int) -> tuple[LinearShape, ...]:
    attention = tuple(
        LinearShape(
            name=f"attention.{name}", in_features=hidden, out_features=hidden, bias=True, kind="attention"
        )
        for name in [*_attention_names(facts), "output.dense"]
    )
    up = LinearShape(name="intermediate.dense", in_features=hidden, out_features=inner, bias=True, kind="mlp")
    down = LinearShape(name="output.dense", in_features=inner, out_features=hidden, bias=True, kind="mlp")
    return (*attention, up, down)


def _relative_rows(facts: ConfigFacts) -> int:
    if facts.has("position_buckets") and facts.whole("position_buckets") > 0:
        return 2 * facts.whole("position_buckets")
    asked = facts.whole("max_relative_positions")
    return 2 * (asked if asked > 0 else facts.size("max_position_embeddings"))


def _shared_params(facts: ConfigFacts, hidden: int) -> int:
    """The relative table with its norm, and the convolution beside the first block (v2 xlarge)."""
    total = 0
    if _is_relative(facts):
        total += _relative_rows(facts) * hidden
        norms = facts.text("norm_rel_ebd") if facts.has("norm_rel_ebd") else "none"
        total += 2 * hidden if "layer_norm" in norms else 0
    width = facts.whole("conv_kernel_size") if facts.has("conv_kernel_size") else 0
    groups = facts.size("conv_groups") if facts.has("conv_groups") else 1
    return total + (hidden * hidden // groups * width + 3 * hidden if width > 0 else 0)


def _table_params(facts: ConfigFacts, hidden: int, width: int) -> int:
    """Absolute positions and token types where there are any, a projection, the norm."""
    rows = facts.size("max_position_embeddings") if facts.flag("position_biased_input") else 0
    projection = width * hidden if width != hidden else 0
    return (rows + facts.whole("type_vocab_size", least=0)) * width + projection + 2 * hidden


def deberta(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """The shape of a DeBERTa classifier. Raises CannotTell for a language model: it has none."""
    refuse_language_model(facts, task)
    hidden, inner = facts.size("hidden_size"), facts.size("intermediate_size")
    width = facts.size("embedding_size") if facts.has("embedding_size") else hidden
    pooled = facts.size("pooler_hidden_size") if facts.has("pooler_hidden_size") else hidden
    heads, classifier = facts.size("num_attention_heads"), linear_params(pooled, num_labels)
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
        gated_mlp=False,
        activation=facts.text("hidden_act"),
        norm="layer",
        positions="relative" if _is_relative(facts) else "learned",
        linears=_linears(facts, hidden, inner),
        block_other_params=4 * hidden,
        word_embedding_params=facts.size("vocab_size") * width,
        other_embedding_params=_table_params(facts, hidden, width) + _shared_params(facts, hidden),
        final_norm_params=0,
        head_params=linear_params(pooled, pooled) + classifier,
        num_labels=num_labels,
        classifier_params=classifier,
        blocks_path="deberta.encoder.layer",
        block_class="DebertaV2Layer",
        attention_kernels=("eager",),
        hidden_dropout=facts.share("hidden_dropout_prob"),
        attention_dropout=facts.share("attention_probs_dropout_prob"),
        embedding_dropout=facts.share("hidden_dropout_prob"),
    )

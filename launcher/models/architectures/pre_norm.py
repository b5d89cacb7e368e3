"""The GPT way of building blocks: layer norms before each sublayer, biases, a plain MLP of two layers.

Covers GPT-2, GPTBigCode, GPT-NeoX (Pythia), BLOOM, OPT and Phi-2, which differ in names, positions and head.
"""

from dataclasses import dataclass
from typing import Literal

from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.shape import LinearShape, ModelShape

ALL_KERNELS = ("eager", "sdpa", "flash_attention_2")


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What differs between members: linear layers in the module tree's order, and what lies around them."""

    linears: tuple[LinearShape, ...]
    heads: int
    kv_heads: int
    blocks_path: str
    block_class: str
    positions: Literal["rope", "learned", "alibi"]
    max_positions: int | None
    activation: str
    dropouts: tuple[float, float, float]
    num_block_norms: int = 2
    embedding_width: int = 0
    other_embedding: int = 0
    has_final_norm: bool = True
    head_bias: bool = False
    kernels: tuple[str, ...] = ALL_KERNELS


def _linear(name: str, in_features: int, out_features: int, bias: bool = True) -> LinearShape:
    is_mlp = name.startswith(("mlp.", "fc"))
    kind: Literal["attention", "mlp"] = "mlp" if is_mlp else "attention"
    return LinearShape(name=name, in_features=in_features, out_features=out_features, bias=bias, kind=kind)


def _layers(facts: ConfigFacts) -> int:
    return facts.size("n_layer", "num_hidden_layers")


def _shape(facts: ConfigFacts, task: str, num_labels: int, hidden: int, parts: _Parts) -> ModelShape:
    width = parts.embedding_width or hidden
    tied, vocabulary = facts.flag("tie_word_embeddings"), facts.size("vocab_size")
    classifier = num_labels * width if task == "classification" else 0
    language = (0 if tied else vocabulary * width) + (vocabulary if parts.head_bias else 0)
    attention, residual, embedding = parts.dropouts
    return ModelShape(
        model_type=facts.model_type,
        task=task,
        is_decoder=True,
        num_layers=_layers(facts),
        hidden_size=hidden,
        num_heads=parts.heads,
        num_kv_heads=parts.kv_heads,
        head_dim=hidden // parts.heads,
        intermediate_size=parts.linears[-1].in_features,
        vocab_size=vocabulary,
        max_positions=parts.max_positions,
        tied=tied,
        gated_mlp=False,
        activation=parts.activation,
        norm="layer",
        positions=parts.positions,
        linears=parts.linears,
        block_other_params=parts.num_block_norms * 2 * hidden,
        word_embedding_params=vocabulary * width,
        other_embedding_params=parts.other_embedding,
        final_norm_params=2 * hidden if parts.has_final_norm else 0,
        head_params=classifier if task == "classification" else language,
        num_labels=num_labels if task == "classification" else 0,
        classifier_params=classifier,
        blocks_path=parts.blocks_path,
        block_class=parts.block_class,
        attention_kernels=parts.kernels,
        attention_dropout=attention,
        hidden_dropout=residual,
        embedding_dropout=embedding,
    )


def gpt2(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """GPT-2 and GPTBigCode, whose heads share one key and one value when `multi_query` is set."""
    hidden, heads = facts.size("n_embd", "hidden_size"), facts.size("n_head", "num_attention_heads")
    inner = facts.size("n_inner") if facts.has("n_inner") else 4 * hidden
    kv_heads = 1 if facts.switch("multi_query") else heads
    positions = facts.size("n_positions", "max_position_embeddings")
    parts = _Parts(
        linears=(
            _linear("attn.c_attn", hidden, hidden + 2 * kv_heads * (hidden // heads)),
            _linear("attn.c_proj", hidden, hidden),
            _linear("mlp.c_fc", hidden, inner),
            _linear("mlp.c_proj", inner, hidden),
        ),
        heads=heads,
        kv_heads=kv_heads,
        blocks_path="transformer.h",
        block_class="GPT2Block" if facts.model_type == "gpt2" else "GPTBigCodeBlock",
        positions="learned",
        max_positions=positions,
        activation=facts.text("activation_function"),
        dropouts=(facts.share("attn_pdrop"), facts.share("resid_pdrop"), facts.share("embd_pdrop")),
        other_embedding=positions * hidden,
    )
    return _shape(facts, task, num_labels, hidden, parts)


def _fused_linears(attention: str, hidden: int, inner: int, bias: bool) -> tuple[LinearShape, ...]:
    return (
        _linear(f"{attention}.query_key_value", hidden, 3 * hidden, bias),
        _linear(f"{attention}.dense", hidden, hidden, bias),
        _linear("mlp.dense_h_to_4h", hidden, inner),
        _linear("mlp.dense_4h_to_h", inner, hidden),
    )


def gpt_neox(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """GPT-NeoX and Pythia: attention and MLP side by side, partly rotary positions."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    dropout = facts.share("hidden_dropout")
    parts = _Parts(
        linears=_fused_linears(
            "attention", hidden, facts.size("intermediate_size"), facts.flag("attention_bias")
        ),
        heads=heads,
        kv_heads=heads,
        blocks_path="gpt_neox.layers",
        block_class="GPTNeoXLayer",
        positions="rope",
        max_positions=facts.size("max_position_embeddings"),
        activation=facts.text("hidden_act"),
        dropouts=(facts.share("attention_dropout"), dropout, dropout),
    )
    return _shape(facts, task, num_labels, hidden, parts)


def bloom(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """BLOOM: ALiBi instead of positions, a norm behind the embedding, eager attention only."""
    hidden, heads = facts.size("n_embed", "hidden_size"), facts.size("n_head", "num_attention_heads")
    parts = _Parts(
        linears=_fused_linears("self_attention", hidden, 4 * hidden, True),
        heads=heads,
        kv_heads=heads,
        blocks_path="transformer.h",
        block_class="BloomBlock",
        positions="alibi",
        max_positions=None,
        activation="gelu",
        dropouts=(facts.share("attention_dropout"), facts.share("hidden_dropout"), 0.0),
        other_embedding=2 * hidden,
        kernels=("eager",),
    )
    return _shape(facts, task, num_labels, hidden, parts)


def _split_linears(
    hidden: int, inner: int, *, order: str, output: str, mlp: str, bias: bool
) -> tuple[LinearShape, ...]:
    return (
        *(_linear(f"self_attn.{letter}_proj", hidden, hidden, bias) for letter in order),
        _linear(f"self_attn.{output}", hidden, hidden, bias),
        _linear(f"{mlp}fc1", hidden, inner, bias),
        _linear(f"{mlp}fc2", inner, hidden, bias),
    )


def opt(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """OPT: a position table with two rows in front; the 350M model norms after, and projects in and out."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    width = facts.size("word_embed_proj_dim") if facts.has("word_embed_proj_dim") else hidden
    positions, dropout = facts.size("max_position_embeddings"), facts.share("dropout")
    projections = 2 * width * hidden if width != hidden else 0
    parts = _Parts(
        linears=_split_linears(
            hidden,
            facts.size("ffn_dim"),
            order="kvq",
            output="out_proj",
            mlp="",
            bias=facts.flag("enable_bias"),
        ),
        heads=heads,
        kv_heads=heads,
        blocks_path="model.decoder.layers",
        block_class="OPTDecoderLayer",
        positions="learned",
        max_positions=positions,
        activation=facts.text("activation_function"),
        dropouts=(facts.share("attention_dropout"), dropout, 0.0),
        embedding_width=width,
        other_embedding=(positions + 2) * hidden + projections,
        has_final_norm=facts.flag("do_layer_norm_before") and not facts.flag("_remove_final_layer_norm"),
    )
    return _shape(facts, task, num_labels, hidden, parts)


def phi(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """Phi-1 and Phi-2: one norm a block, attention and MLP side by side, a bias on the head."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    parts = _Parts(
        linears=_split_linears(
            hidden, facts.size("intermediate_size"), order="qkv", output="dense", mlp="mlp.", bias=True
        ),
        heads=heads,
        kv_heads=heads,
        blocks_path="model.layers",
        block_class="PhiDecoderLayer",
        positions="rope",
        max_positions=facts.size("max_position_embeddings"),
        activation=facts.text("hidden_act"),
        dropouts=(facts.share("attention_dropout"), facts.share("resid_pdrop"), facts.share("embd_pdrop")),
        num_block_norms=1,
        head_bias=True,
    )
    return _shape(facts, task, num_labels, hidden, parts)

"""Models whose classes come as remote code: counted by formula, never instantiated here.

ChatGLM2/3 and GLM-4 (`chatglm`), the first Qwen (`qwen`), Baichuan and InternLM2: all gated, with RMS norms
and untied heads. A test holds the counts against published ones.
"""

from dataclasses import dataclass
from typing import Literal

from launcher.errors import CannotTell, Problem
from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.shape import LinearShape, ModelShape


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What the four families name differently."""

    linears: tuple[LinearShape, ...]
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    max_positions: int
    blocks_path: str
    block_class: str
    positions: Literal["rope", "alibi"] = "rope"
    upcasts_logits: bool = True


def _linear(name: str, in_features: int, out_features: int, bias: bool = False) -> LinearShape:
    is_mlp = name.startswith(("mlp.", "feed_forward."))
    kind: Literal["attention", "mlp"] = "mlp" if is_mlp else "attention"
    return LinearShape(name=name, in_features=in_features, out_features=out_features, bias=bias, kind=kind)


def _shape(facts: ConfigFacts, task: str, parts: _Parts) -> ModelShape:
    if task != "causal_lm":
        raise _no_classifier(facts)
    return ModelShape(
        model_type=facts.model_type,
        task=task,
        is_decoder=True,
        num_layers=parts.layers,
        hidden_size=parts.hidden,
        num_heads=parts.heads,
        num_kv_heads=parts.kv_heads,
        head_dim=parts.hidden // parts.heads,
        intermediate_size=parts.inner,
        vocab_size=parts.vocabulary,
        max_positions=parts.max_positions,
        tied=False,
        gated_mlp=True,
        activation="silu",
        norm="rms",
        positions=parts.positions,
        linears=parts.linears,
        block_other_params=2 * parts.hidden,
        word_embedding_params=parts.vocabulary * parts.hidden,
        other_embedding_params=0,
        final_norm_params=parts.hidden,
        head_params=parts.vocabulary * parts.hidden,
        blocks_path=parts.blocks_path,
        block_class=parts.block_class,
        attention_kernels=("eager", "sdpa"),
        upcasts_logits=parts.upcasts_logits,
        is_verified=False,
    )


def chatglm(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """ChatGLM2-6B, ChatGLM3-6B, GLM-4-9B: grouped heads, one fused projection, gate and up in one matrix."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    head, inner = facts.size("kv_channels"), facts.size("ffn_hidden_size")
    kv_heads = facts.size("multi_query_group_num") if facts.flag("multi_query_attention") else heads
    bias = facts.flag("add_bias_linear")
    fused = head * (heads + 2 * kv_heads)
    parts = _Parts(
        linears=(
            _linear("self_attention.query_key_value", hidden, fused, bias or facts.flag("add_qkv_bias")),
            _linear("self_attention.dense", heads * head, hidden, bias),
            _linear("mlp.dense_h_to_4h", hidden, 2 * inner, bias),
            _linear("mlp.dense_4h_to_h", inner, hidden, bias),
        ),
        layers=facts.size("num_layers", "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        inner=inner,
        vocabulary=facts.size("padded_vocab_size"),
        max_positions=facts.size("seq_length"),
        blocks_path="transformer.encoder.layers",
        block_class="GLMBlock",
    )
    return _shape(facts, task, parts)


def qwen(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """The first Qwen: `intermediate_size` counts gate and up together; one bias, on the fused projection."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    inner, width = facts.size("intermediate_size") // 2, facts.size("kv_channels") * heads
    parts = _Parts(
        linears=(
            _linear("attn.c_attn", hidden, 3 * width, True),
            _linear("attn.c_proj", width, hidden),
            _linear("mlp.w1", hidden, inner),
            _linear("mlp.w2", hidden, inner),
            _linear("mlp.c_proj", inner, hidden),
        ),
        layers=facts.size("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        inner=inner,
        vocabulary=facts.size("vocab_size"),
        max_positions=facts.size("max_position_embeddings", "seq_length"),
        blocks_path="transformer.h",
        block_class="QWenBlock",
        upcasts_logits=False,
    )
    return _shape(facts, task, parts)


def baichuan(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """Baichuan 1 and 2: LLaMA with a fused projection; the 13B models have ALiBi and no position table."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    inner, has_table = facts.size("intermediate_size"), facts.has("max_position_embeddings")
    parts = _Parts(
        linears=(
            _linear("self_attn.W_pack", hidden, 3 * hidden),
            _linear("self_attn.o_proj", hidden, hidden),
            _linear("mlp.gate_proj", hidden, inner),
            _linear("mlp.down_proj", inner, hidden),
            _linear("mlp.up_proj", hidden, inner),
        ),
        layers=facts.size("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        inner=inner,
        vocabulary=facts.size("vocab_size"),
        max_positions=facts.size("max_position_embeddings", "model_max_length"),
        blocks_path="model.layers",
        block_class="DecoderLayer" if has_table else "BaichuanLayer",
        positions="rope" if has_table else "alibi",
    )
    return _shape(facts, task, parts)


def internlm2(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """InternLM2: LLaMA with grouped heads in one fused projection, under names of its own."""
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    kv_heads, inner = facts.size("num_key_value_heads"), facts.size("intermediate_size")
    bias, fused = facts.flag("bias"), hidden + 2 * kv_heads * (hidden // heads)
    parts = _Parts(
        linears=(
            _linear("attention.wqkv", hidden, fused, bias),
            _linear("attention.wo", hidden, hidden, bias),
            _linear("feed_forward.w1", hidden, inner),
            _linear("feed_forward.w3", hidden, inner),
            _linear("feed_forward.w2", inner, hidden),
        ),
        layers=facts.size("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        inner=inner,
        vocabulary=facts.size("vocab_size"),
        max_positions=facts.size("max_position_embeddings"),
        blocks_path="model.layers",
        block_class="InternLM2DecoderLayer",
    )
    return _shape(facts, task, parts)


def _no_classifier(facts: ConfigFacts) -> CannotTell:
    return CannotTell(
        Problem(
            where="task",
            what=f"the head that {facts.model_type}'s own code puts on a classifier is not known here",
            right="causal_lm, or an encoder such as FacebookAI/roberta-large for classification",
            type="task=causal_lm",
        )
    )

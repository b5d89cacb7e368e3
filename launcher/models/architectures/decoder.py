"""The LLaMA way of building blocks: RMS norms, rotary positions, grouped heads, a gated MLP.

Covers LLaMA, Mistral, Mixtral, Qwen2, Qwen3, Gemma 1-3, Phi-3, Granite and OLMo-2, which differ in biases,
norms on heads, norms after a sublayer, fused projections and experts.
"""

from dataclasses import dataclass
from typing import Literal

from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.shape import LinearShape, ModelShape

ALL_KERNELS = ("eager", "sdpa", "flash_attention_2")


@dataclass(frozen=True, kw_only=True)
class Traits:
    """How one member of the family departs from LLaMA."""

    block_class: str
    qkv_bias: bool = False
    head_norms: Literal["none", "head", "width"] = "none"
    num_block_norms: int = 2
    is_fused: bool = False
    has_experts: bool = False
    kernels: tuple[str, ...] = ALL_KERNELS


TRAITS = {
    "llama": Traits(block_class="LlamaDecoderLayer"),
    "mistral": Traits(block_class="MistralDecoderLayer"),
    "mixtral": Traits(block_class="MixtralDecoderLayer", has_experts=True),
    "qwen2": Traits(block_class="Qwen2DecoderLayer", qkv_bias=True),
    "qwen3": Traits(block_class="Qwen3DecoderLayer", head_norms="head"),
    "gemma": Traits(block_class="GemmaDecoderLayer"),
    "gemma2": Traits(
        block_class="Gemma2DecoderLayer", num_block_norms=4, kernels=("eager", "flash_attention_2")
    ),
    "gemma3_text": Traits(block_class="Gemma3DecoderLayer", num_block_norms=4, head_norms="head"),
    "phi3": Traits(block_class="Phi3DecoderLayer", is_fused=True),
    "granite": Traits(block_class="GraniteDecoderLayer"),
    "olmo2": Traits(block_class="Olmo2DecoderLayer", head_norms="width"),
}


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    """The widths of one block."""

    hidden: int
    heads: int
    kv_heads: int
    head: int
    intermediate: int

    @property
    def query(self) -> int:
        return self.heads * self.head

    @property
    def key_value(self) -> int:
        return self.kv_heads * self.head


def _sizes(facts: ConfigFacts) -> _Sizes:
    hidden, heads = facts.size("hidden_size"), facts.size("num_attention_heads")
    return _Sizes(
        hidden=hidden,
        heads=heads,
        kv_heads=facts.size("num_key_value_heads") if facts.has("num_key_value_heads") else heads,
        head=facts.size("head_dim") if facts.has("head_dim") else hidden // heads,
        intermediate=facts.size("intermediate_size"),
    )


def _linear(name: str, in_features: int, out_features: int, bias: bool) -> LinearShape:
    kind: Literal["attention", "mlp"] = "attention" if name.startswith("self_attn") else "mlp"
    return LinearShape(name=name, in_features=in_features, out_features=out_features, bias=bias, kind=kind)


def _attention(sizes: _Sizes, traits: Traits, bias: bool) -> tuple[LinearShape, ...]:
    hidden, query, key_value = sizes.hidden, sizes.query, sizes.key_value
    output = _linear("self_attn.o_proj", query, hidden, bias)
    if traits.is_fused:
        return (output, _linear("self_attn.qkv_proj", hidden, query + 2 * key_value, bias))
    projected = [("q_proj", query), ("k_proj", key_value), ("v_proj", key_value)]
    has_bias = bias or traits.qkv_bias
    return (*(_linear(f"self_attn.{name}", hidden, width, has_bias) for name, width in projected), output)


def _mlp(sizes: _Sizes, traits: Traits, bias: bool) -> tuple[LinearShape, ...]:
    if traits.has_experts:
        return ()
    hidden, inner = sizes.hidden, sizes.intermediate
    down = _linear("mlp.down_proj", inner, hidden, bias)
    if traits.is_fused:
        return (_linear("mlp.gate_up_proj", hidden, 2 * inner, bias), down)
    return (_linear("mlp.gate_proj", hidden, inner, bias), _linear("mlp.up_proj", hidden, inner, bias), down)


def _norm_params(sizes: _Sizes, traits: Traits) -> int:
    on_heads = {"none": 0, "head": 2 * sizes.head, "width": sizes.query + sizes.key_value}
    return traits.num_block_norms * sizes.hidden + on_heads[traits.head_norms]


def decoder(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """The shape of a decoder of this family, with the task's head."""
    traits, sizes = TRAITS[facts.model_type], _sizes(facts)
    experts = facts.size("num_local_experts") if traits.has_experts else 0
    expert_params = experts * 3 * sizes.hidden * sizes.intermediate
    embedding, tied = facts.size("vocab_size") * sizes.hidden, facts.flag("tie_word_embeddings")
    classifier = num_labels * sizes.hidden if task == "classification" else 0
    return ModelShape(
        model_type=facts.model_type,
        task=task,
        is_decoder=True,
        num_layers=facts.size("num_hidden_layers"),
        hidden_size=sizes.hidden,
        num_heads=sizes.heads,
        num_kv_heads=sizes.kv_heads,
        head_dim=sizes.head,
        intermediate_size=sizes.intermediate,
        vocab_size=facts.size("vocab_size"),
        max_positions=facts.size("max_position_embeddings"),
        tied=tied,
        gated_mlp=True,
        activation=facts.text("hidden_activation", "hidden_act"),
        norm="rms",
        positions="rope",
        linears=_attention(sizes, traits, facts.switch("attention_bias"))
        + _mlp(sizes, traits, facts.switch("mlp_bias")),
        block_other_params=_norm_params(sizes, traits) + expert_params + experts * sizes.hidden,
        word_embedding_params=embedding,
        other_embedding_params=0,
        final_norm_params=sizes.hidden,
        head_params=classifier if task == "classification" else 0 if tied else embedding,
        num_labels=num_labels if task == "classification" else 0,
        classifier_params=classifier,
        blocks_path="model.layers",
        block_class=traits.block_class,
        attention_kernels=traits.kernels,
        attention_dropout=facts.share("attention_dropout"),
        hidden_dropout=facts.rate("resid_pdrop"),
        embedding_dropout=facts.rate("embd_pdrop"),
        num_experts=experts,
        num_active_experts=facts.size("num_experts_per_tok") if experts else 0,
        expert_params=expert_params,
    )

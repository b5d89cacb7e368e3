"""What a model is made of, in numbers: its layers and parameters, read off a configuration. No torch."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class LinearShape:
    """One linear layer of a block; `name` is its path inside the block, as in the module tree."""

    name: str
    in_features: int
    out_features: int
    bias: bool
    kind: Literal["attention", "mlp"]

    @property
    def weight_params(self) -> int:
        """Elements of the matrix alone."""
        return self.in_features * self.out_features

    @property
    def num_params(self) -> int:
        """Weight and bias elements."""
        return self.weight_params + (self.out_features if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """An architecture with its sizes; every `*_params` counts elements, tied weights once.

    `block_other_params`: everything in one block that is no linear layer (norms, relative positions).
    `head_params`: what follows the blocks and the final norm: the language model's head (0 where it is
    tied to the embedding) or the pooler and classification head, with biases; `classifier_params` are
    the part of it that adapters keep trained beside themselves (0 for a language model).
    `expert_params`: elements of all experts in one block, inside `block_other_params` (experts are no
    linear layers, and no adapter goes beside them). `upcasts_logits`: the loss makes its own fp32 copy
    of the logits. `is_verified`: counted against the instantiated model; False for architectures that
    come as remote code, whose counts are compared with published figures only.
    """

    model_type: str
    task: str
    is_decoder: bool
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_positions: int | None
    tied: bool
    gated_mlp: bool
    activation: str
    norm: Literal["rms", "layer"]
    positions: Literal["rope", "learned", "alibi", "relative"]
    linears: tuple[LinearShape, ...]
    block_other_params: int
    word_embedding_params: int
    other_embedding_params: int
    final_norm_params: int
    head_params: int
    num_labels: int = 0
    blocks_path: str = ""
    block_class: str = ""
    attention_kernels: tuple[str, ...] = ("eager", "sdpa", "flash_attention_2")
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    num_experts: int = 0
    num_active_experts: int = 0
    expert_params: int = 0
    classifier_params: int = 0
    position_offset: int = 0
    upcasts_logits: bool = True
    is_verified: bool = True

    @property
    def is_post_norm(self) -> bool:
        """Whether each sublayer is followed by its norm, as in BERT: encoders, but for ModernBERT."""
        return not self.is_decoder and self.model_type != "modernbert"

    @property
    def normalises_stream(self) -> bool:
        """Whether the stream between blocks comes out of a norm: a sublayer's, or the embeddings' (BLOOM)."""
        return self.is_post_norm or self.model_type in ("bloom", "modernbert")

    @property
    def has_embeddings_apart(self) -> bool:
        """Whether the model names its embeddings among the modules kept whole (`_no_split_modules`)."""
        return self.model_type in ("bert", "roberta", "xlm-roberta", "modernbert")

    @property
    def max_tokens(self) -> int | None:
        """Longest row that the positions take: RoBERTa's table of 514 starts at 2 and takes 512."""
        return None if self.max_positions is None else self.max_positions - self.position_offset

    @property
    def block_linear_params(self) -> int:
        """Elements of the linear layers of one block."""
        return sum(linear.num_params for linear in self.linears)

    @property
    def block_params(self) -> int:
        """Elements of one block."""
        return self.block_linear_params + self.block_other_params

    @property
    def root_params(self) -> int:
        """Elements outside the blocks: embeddings, final norm, head."""
        return (
            self.word_embedding_params
            + self.other_embedding_params
            + self.final_norm_params
            + self.head_params
        )

    @property
    def num_params(self) -> int:
        """Elements of the whole model."""
        return self.num_layers * self.block_params + self.root_params

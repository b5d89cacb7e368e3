"""The BERT way of building blocks: layer norms after each sublayer, learned positions, biases everywhere.

Covers BERT, RoBERTa, XLM-RoBERTa and ELECTRA, which differ in the head, the pooler, the first position
and the embeddings' own width.
"""

from dataclasses import dataclass
from typing import Literal

from launcher.errors import CannotTell, Problem
from launcher.models.architectures.config_facts import ConfigFacts
from launcher.models.shape import LinearShape, ModelShape


@dataclass(frozen=True, kw_only=True)
class Traits:
    """How one member of the family departs from BERT.

    `classifier`: one linear layer behind a pooler, or two layers of its own without a pooler.
    `starts_after_padding`: positions begin at the padding id + 1.
    """

    base: str
    block_class: str
    classifier: Literal["pooler", "two layers"]
    starts_after_padding: bool = False


TRAITS = {
    "bert": Traits(base="bert", block_class="BertLayer", classifier="pooler"),
    "roberta": Traits(
        base="roberta", block_class="RobertaLayer", classifier="two layers", starts_after_padding=True
    ),
    "xlm-roberta": Traits(
        base="roberta", block_class="XLMRobertaLayer", classifier="two layers", starts_after_padding=True
    ),
    "electra": Traits(base="electra", block_class="ElectraLayer", classifier="two layers"),
}


def linear_params(in_features: int, out_features: int) -> int:
    """Elements of a linear layer with a bias."""
    return in_features * out_features + out_features


def refuse_language_model(facts: ConfigFacts, task: str) -> None:
    """Raise CannotTell where `task` is one that this encoder has no head for."""
    if task != "classification":
        raise CannotTell(
            Problem(
                where="task",
                what=f"{facts.model_type} is an encoder without a causal language model",
                right="classification, or a decoder for causal_lm",
                type="task=classification",
            )
        )


def _linears(hidden: int, inner: int) -> tuple[LinearShape, ...]:
    attention = ("self.query", "self.key", "self.value", "output.dense")
    mlp = (("intermediate.dense", hidden, inner), ("output.dense", inner, hidden))
    return tuple(
        LinearShape(
            name=f"attention.{name}", in_features=hidden, out_features=hidden, bias=True, kind="attention"
        )
        for name in attention
    ) + tuple(
        LinearShape(name=name, in_features=width, out_features=out, bias=True, kind="mlp")
        for name, width, out in mlp
    )


def _classifier_params(traits: Traits, hidden: int, num_labels: int) -> int:
    last = linear_params(hidden, num_labels)
    return last if traits.classifier == "pooler" else linear_params(hidden, hidden) + last


def _language_head_params(facts: ConfigFacts, hidden: int, width: int) -> int:
    """Transform, its norm and a bias per token; the output matrix only where it is not tied.

    Untied, BERT and RoBERTa keep a second bias: the head's and the matrix's are then two.
    """
    vocabulary = facts.size("vocab_size")
    untied = vocabulary * (width + (0 if facts.model_type == "electra" else 1))
    transform = linear_params(hidden, width) + 2 * width
    return transform + vocabulary + (0 if facts.flag("tie_word_embeddings") else untied)


def encoder(facts: ConfigFacts, task: str, num_labels: int) -> ModelShape:
    """The shape of an encoder of this family, with the task's head."""
    traits, hidden = TRAITS[facts.model_type], facts.size("hidden_size")
    width = facts.size("embedding_size") if facts.model_type == "electra" else hidden
    heads, inner = facts.size("num_attention_heads"), facts.size("intermediate_size")
    positions, kinds = facts.size("max_position_embeddings"), facts.whole("type_vocab_size", least=0)
    is_classifier = task == "classification"
    classifier = _classifier_params(traits, hidden, num_labels) if is_classifier else 0
    pooler = linear_params(hidden, hidden) if is_classifier and traits.classifier == "pooler" else 0
    widening = linear_params(width, hidden) if width != hidden else 0
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
        max_positions=positions,
        position_offset=facts.whole("pad_token_id") + 1 if traits.starts_after_padding else 0,
        tied=facts.flag("tie_word_embeddings"),
        gated_mlp=False,
        activation=facts.text("hidden_act"),
        norm="layer",
        positions="learned",
        linears=_linears(hidden, inner),
        block_other_params=4 * hidden,
        word_embedding_params=facts.size("vocab_size") * width,
        other_embedding_params=(positions + kinds + 2) * width + widening,
        final_norm_params=0,
        head_params=pooler + classifier if is_classifier else _language_head_params(facts, hidden, width),
        num_labels=num_labels if is_classifier else 0,
        classifier_params=classifier,
        blocks_path=f"{traits.base}.encoder.layer",
        block_class=traits.block_class,
        hidden_dropout=facts.share("hidden_dropout_prob"),
        attention_dropout=facts.share("attention_probs_dropout_prob"),
        embedding_dropout=facts.share("hidden_dropout_prob"),
    )

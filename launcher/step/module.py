"""The module that every backend wraps: batch in, summed loss out. The only forward pass there is."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from launcher.losses.cross_entropy_torch import chunked_cross_entropy, shifted_cross_entropy
from launcher.losses.labelled_torch import summed_label_loss
from launcher.precision_torch import StepPrecision
from launcher.step.packed import packed_inputs

# Models that bend the head's logits afterwards: a loss on the head's own output would be wrong there.
_LOGIT_CHANGES = ("final_logit_softcapping", "logit_scale", "logits_scaling")


class TrainModule(nn.Module):
    """A model, its task's loss and its precision.

    `forward` returns (loss summed over targets, logits): logits are [rows, classes] while evaluating a
    classifier, else an empty tensor.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        task: str,
        precision: StepPrecision,
        chunk_bytes: int | None,
        class_weights: Sequence[float] | None = None,
    ) -> None:
        """`chunk_bytes`: most bytes of fp32 logits at once (causal LM); None: all of them."""
        super().__init__()
        self.model = model
        self.task = task
        self.precision = precision
        self.class_weights = None if class_weights is None else tuple(class_weights)
        self._placed: Tensor | None = None
        self.chunk_bytes = chunk_bytes if chunk_bytes and self.can_chunk() else None

    def base(self) -> Any:
        """The Hugging Face model inside, adapter layers in place."""
        model: Any = self.model
        return model.get_base_model() if hasattr(model, "get_base_model") else model

    def adds_tokens(self) -> bool:
        """Whether an adapter puts vectors in front of the input: only its own forward pass does so."""
        config = getattr(self.model, "active_peft_config", None)
        return bool(getattr(config, "is_prompt_learning", False))

    def borrowed_parameters(self) -> list[nn.Parameter]:
        """Parameters that `forward` uses outside the module that owns them."""
        borrowed = [] if self.chunk_bytes is None else [*self.base().get_output_embeddings().parameters()]
        if self.adds_tokens():  # the adapter embeds the input itself, to put its vectors in front
            borrowed += [*self.base().get_input_embeddings().parameters()]
        return borrowed

    def can_chunk(self) -> bool:
        """Whether the loss can be taken from the last hidden state and a plain linear head."""
        base = self.base()
        if self.task != "causal_lm" or self.adds_tokens():
            return False
        head = base.get_output_embeddings()
        changed = any(getattr(base.config, key, None) not in (None, 1, 1.0) for key in _LOGIT_CHANGES)
        return type(head) is nn.Linear and not changed

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        labels: Tensor,
        position_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`input_ids`, `attention_mask` [rows, length]; `labels` [rows], [rows, classes] or [rows, length].

        `position_ids` [rows, length] are those of packed rows; absent, each row is one sample.
        `token_type_ids` [rows, length] tell the two texts of a pair apart, for models that learn them.
        """
        with self.precision.autocast():
            if self.task == "classification":
                types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
                return self._classify(
                    {"input_ids": input_ids, "attention_mask": attention_mask} | types, labels
                )
            if position_ids is None:
                inputs: dict[str, Tensor | None] = {"input_ids": input_ids, "attention_mask": attention_mask}
            else:
                inputs, labels = packed_inputs(input_ids, position_ids, labels, self.kernel())
            return self._next_token(inputs, labels), labels.new_empty(0)

    def kernel(self) -> str:
        """The attention implementation in use."""
        return str(getattr(self.base().config, "_attn_implementation", None) or "eager")

    def _classify(self, inputs: dict[str, Tensor], labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.model(**inputs).logits
        loss = summed_label_loss(logits, labels, self._weights(logits.device))
        return loss, logits.new_empty(0) if self.training else logits

    def _weights(self, device: torch.device) -> Tensor | None:
        """The classes' weights on a device; none while evaluating, whose loss stays comparable."""
        if self.class_weights is None or not self.training:
            return None
        # No buffer: a backend would shard it, a checkpoint would hold it.
        if self._placed is None or self._placed.device != device:
            self._placed = torch.tensor(self.class_weights, dtype=torch.float32, device=device)
        return self._placed

    def _next_token(self, inputs: dict[str, Tensor | None], labels: Tensor) -> Tensor:
        if self.chunk_bytes is None:
            logits = self.model(**inputs, use_cache=False).logits
            virtual = logits.shape[1] - labels.shape[1]
            return shifted_cross_entropy(logits[:, virtual:] if virtual else logits, labels)
        base = self.base()
        hidden = base.base_model(**inputs, use_cache=False)[0]
        return chunked_cross_entropy(hidden, base.get_output_embeddings(), labels, self.chunk_bytes)


def seed_micro_batch(seed: int, step: int, micro: int, rank: int) -> None:
    """Make dropout a function of (seed, step, micro batch, rank) alone.

    A resumed, repeated or interrupted-by-evaluation run then draws the same masks as an undisturbed
    one, with no generator state to save.
    """
    mixed = (((seed * 1_000_003 + step) * 1_000_003 + micro) * 1_000_003 + rank) % (2**63 - 1)
    # Not torch.manual_seed: where CUDA is not in use it formats a stack for each device kind, every time.
    torch.default_generator.manual_seed(mixed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed(mixed)

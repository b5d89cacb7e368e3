"""Gradients as a backward pass makes them: the head's first, then block by block, the embeddings' last."""

from dataclasses import dataclass

from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, ranks_of
from launcher.memory.states import divides_gradients, gradient_width


@dataclass(frozen=True, kw_only=True)
class GradientBytes:
    """Bytes of whole gradients: the head's, one block's, the embeddings'. `share`: what a rank keeps of them.

    A tied matrix is the head's: its first part is there before the blocks' (`states.tied_gradient`).
    `is_whole_first`: FSDP has a unit's gradients whole until the unit is done.
    """

    head: int
    block: int
    embeddings: int
    share: float
    is_whole_first: bool

    @property
    def head_held(self) -> int:
        """The head's while blocks work: the root's unit ends last, so that FSDP has not divided it yet."""
        return self.head if self.is_whole_first else int(self.head * self.share)

    def blocks_held(self, done: int) -> int:
        """Of `done` finished blocks."""
        return int(done * self.block * self.share)

    def own_held(self, gradient_share: float) -> int:
        """Of the block at work, so far."""
        return int(self.block * gradient_share * (1 if self.is_whole_first else self.share))


def gradient_parts(setting: Setting, sizes: Sizes, *, graph_blocks: int) -> GradientBytes:
    """Read off the shape. Nothing where the optimizer uses them up as they come, or host memory has them."""
    is_kept = not (setting.optimizer_in_backward or setting.sharding.offload_optimizer)
    head, block, embeddings = _elements(setting, sizes, graph_blocks)
    width = gradient_width(setting, sizes) if is_kept else 0
    return GradientBytes(
        head=head * width,
        block=block * width,
        embeddings=embeddings * width,
        share=1 / ranks_of(setting) if divides_gradients(setting) else 1.0,
        is_whole_first=setting.sharding_kind == "fsdp2" and setting.num_ranks > 1,
    )


def _elements(setting: Setting, sizes: Sizes, graph_blocks: int) -> tuple[int, int, int]:
    """Trained elements of head, one block and embeddings."""
    shape, blocks = setting.shape, max(1, graph_blocks)
    if not sizes.trains_base:
        copies = 0 if setting.adapter is None else setting.adapter.head_copy_params
        return copies, (sizes.trained - copies) // blocks, 0
    head = shape.head_params + shape.final_norm_params
    if sizes.trained < shape.num_params:  # the embeddings are the first that one freezes
        head = min(head, sizes.trained)
        return head, (sizes.trained - head) // blocks, 0
    tied = shape.word_embedding_params if shape.tied and shape.task == "causal_lm" else 0
    embeddings = shape.word_embedding_params + shape.other_embedding_params - tied
    return head + tied, shape.block_params, embeddings

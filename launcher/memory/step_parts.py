"""What several phases of a step have alive, computed once: saved tensors, copies of weights, gradients."""

from dataclasses import dataclass

from launcher.memory.activations import PROBABILITIES, keeps_inputs
from launcher.memory.block_moments import Block, block_of
from launcher.memory.breakdown import Terms, term, total
from launcher.memory.gathered import bucket_terms
from launcher.memory.gradients import GradientBytes, gradient_parts
from launcher.memory.logits import head_copy, holds_frozen_casts, loss_terms
from launcher.memory.setting import Setting
from launcher.memory.sizes import BYTES, Sizes
from launcher.memory.states import gradient_bytes


@dataclass(frozen=True, kw_only=True)
class StepParts:
    """A setting with what its phases share. `graph_blocks`: those that keep something for a backward pass."""

    setting: Setting
    sizes: Sizes
    block: Block
    loss: Terms
    forward_loss: Terms
    gradients: GradientBytes
    kept_gradients: Terms
    casts: Terms
    exchange: Terms
    graph_blocks: int


def step_parts(setting: Setting, sizes: Sizes) -> StepParts:
    """Computed once for all phases."""
    layers = setting.shape.num_layers if setting.graph_blocks is None else setting.graph_blocks
    head = head_copy(setting, sizes)
    return StepParts(
        setting=setting,
        sizes=sizes,
        block=block_of(setting, sizes),
        loss=[*loss_terms(setting, sizes), *head],
        forward_loss=[*loss_terms(setting, sizes, forward=True), *head],
        gradients=gradient_parts(setting, sizes, graph_blocks=layers),
        kept_gradients=_kept_gradients(setting, sizes),
        casts=_cast_cache(setting, sizes),
        exchange=bucket_terms(setting, sizes),
        graph_blocks=layers,
    )


def gradients(setting: Setting, sizes: Sizes) -> Terms:
    """All that one rank keeps on the card until the step."""
    held = 0 if setting.sharding.offload_optimizer else gradient_bytes(setting, sizes)
    return term("gradients", held, "p x dtype / ranks")


def _kept_gradients(setting: Setting, sizes: Sizes) -> Terms:
    """Gradients that are there before the backward pass: earlier micro batches', or kept between steps.

    DDP builds its buckets at the start; gradients that are views of them exist from then on.
    """
    in_buckets = setting.sharding_kind == "none" and setting.num_ranks > 1 and setting.ddp_bucket_view
    # ZeRO-3 allocates its gradients' partition at the start (stage3.py: grad_partitions_flat_buffer).
    is_allocated = in_buckets or setting.sharding_kind == "zero3"
    if setting.accumulation_steps > 1 or setting.gradients_kept or is_allocated:
        return gradients(setting, sizes)
    return []


def _autocast_copies(setting: Setting, sizes: Sizes) -> bool:
    """Whether cast copies of trained fp32 weights stay: FSDP's mixed precision gathers them cast, ZeRO-3's
    linear layers save the weights themselves.
    """  # noqa: D205
    if setting.pure or setting.precision == "fp32" or setting.sharding_kind == "fsdp1":
        return False
    if keeps_inputs(setting):
        return False
    is_half = setting.gathered_dtype in ("bfloat16", "float16")
    return sizes.trained_bytes == 4 and not sizes.has_masters and not is_half


def _cast_cache(setting: Setting, sizes: Sizes) -> Terms:
    """Half copies of trained fp32 matrices: autocast keeps them until its context ends (the forward pass).

    torch/aten/src/ATen/autocast_mode.cpp, cached_cast: leaves that require a gradient, nothing else. The
    head's copy is counted with the loss. FSDP2's gathered weights are cached all the same. A
    frozen fp32 matrix is cast for each product, which keeps the copy for its input's gradient.
    Without the cache saved products hold them, or checkpointing lets them go block by block.
    """
    is_dropped = not setting.autocast_cache and setting.recomputes
    if is_dropped or not _autocast_copies(setting, sizes):
        return []
    linear = setting.shape.num_layers * sizes.block_linear
    if not sizes.trains_base:
        linear = sizes.trained + (linear if holds_frozen_casts(setting, sizes) else 0)
    return term("autocast weight copies", sizes.compute_bytes * linear, "c x matrices")


def block_casts(parts: StepParts, *, behind: float) -> Terms:
    """Half copies that saved products hold of the blocks `behind`; where those recompute, of one at most."""
    setting, sizes = parts.setting, parts.sizes
    is_cast = sizes.trains_base or holds_frozen_casts(setting, sizes)
    if not is_cast or not _autocast_copies(setting, sizes):
        return []
    blocks = min(1.0, behind) if parts.setting.recomputes else behind
    return term("autocast weight copies", blocks * sizes.block_linear * sizes.compute_bytes, "c x matrices")


def checkpoints(parts: StepParts, *, blocks: int) -> Terms:
    """The blocks' inputs, which full checkpointing keeps."""
    setting, sizes = parts.setting, parts.sizes
    if not setting.recomputes or setting.offload_activations:
        return []
    width = sizes.residual_bytes * setting.shape.hidden_size
    return term("checkpoints", blocks * width * sizes.tokens, f"{blocks} x {width} T")


def saved(parts: StepParts, *, blocks: int) -> Terms:
    """What blocks save without full checkpointing, a line a kind.

    Selective checkpointing makes the attention's probabilities again (Korthikanti et al. 2022, section 5).
    """
    if parts.setting.recomputes:
        return []
    tokens = parts.sizes.tokens
    return [
        each
        for line in parts.block.saved
        if not (parts.setting.checkpointing == "selective" and line.name == PROBABILITIES)
        for each in term(line.name, blocks * line.per_token * tokens, f"({line.formula}) x {blocks} T")
    ]


def kept_by_block(parts: StepParts) -> float:
    """Bytes that one block more leaves behind: its checkpoint, or what it saves with its cast weights."""
    casts = block_casts(parts, behind=1.0) if parts.casts else []
    return total([*checkpoints(parts, blocks=1), *saved(parts, blocks=1), *casts])


def embeddings(parts: StepParts) -> Terms:
    """Encoders normalise and drop out their embeddings: the norm's input r h and a mask h.

    Trained, or on the way to adapters behind checkpointed blocks, whose inputs then require a gradient:
    the word embedding's output is kept beside (launcher.models.load_torch, peft: a hook on it).
    """
    setting, sizes = parts.setting, parts.sizes
    is_open = setting.graph_blocks in (None, setting.shape.num_layers)
    if setting.shape.is_decoder or not is_open:
        return []
    width = sizes.residual_bytes + (1 if setting.shape.embedding_dropout else 0)
    if not sizes.trains_base:
        width += BYTES[setting.weights_dtype]
        if not setting.recomputes:
            return []
    return term("embeddings", width * setting.shape.hidden_size * sizes.tokens, f"{width} h T")


def streams_in_hand(parts: StepParts) -> Terms:
    """The loop over blocks and the model's forward hold two streams as locals: the last block's input, and
    the embeddings' output. Checkpoints are those; full training without casts saves them.
    """  # noqa: D205
    setting, sizes = parts.setting, parts.sizes
    is_saved = sizes.trains_base and sizes.residual_bytes <= sizes.compute_bytes
    is_saved = is_saved or keeps_inputs(setting)
    if setting.recomputes or is_saved or not setting.shape.is_post_norm:
        return []
    return term(
        "streams in hand", 2 * sizes.residual_bytes * setting.shape.hidden_size * sizes.tokens, "2 r h T"
    )

"""The closed-form estimate: per rank and phase, one line a term. No torch, about a tenth of a millisecond."""

from launcher.memory.activations import Block, block_of
from launcher.memory.breakdown import PHASES, Breakdown, Phase, Term
from launcher.memory.gathered import (
    bucket_terms,
    gathered_terms,
    load_terms,
    retained_stream_bytes,
    root_gradient_terms,
    save_terms,
    whole_gradient_terms,
)
from launcher.memory.logits import evaluation_terms, head_copy, loss_terms
from launcher.memory.reserved import (
    SHARDED_BLOCK_SHARE,
    ShortLived,
    context_bytes,
    process_range,
    reserved_range,
)
from launcher.memory.setting import Setting
from launcher.memory.sizes import Sizes, ranks_of, sizes_of
from launcher.memory.standing import standing_of
from launcher.memory.states import gradient_bytes, gradient_width, state_terms, step_terms, tied_gradient
from launcher.memory.weights import weight_terms


def estimate(setting: Setting, *, usable_bytes: int | None = None) -> Breakdown:
    """Every phase of one rank; the peak is their maximum. Raises nothing: any setting has an answer.

    `usable_bytes`: the card's memory, which the ranges of reserved and process memory end at.
    """
    sizes = sizes_of(setting)
    block = block_of(setting, sizes)
    weights = weight_terms(setting, sizes)
    held = [*weights, *_workspaces(setting), *state_terms(setting, sizes)]
    makers = {
        "load": lambda: load_terms(setting, sizes) or weights,
        "forward": lambda: held + _forward(setting, sizes, block),
        "backward": lambda: held + _backward(setting, sizes, block),
        "optimizer": lambda: held + _optimizer(setting, sizes),
        "evaluate": lambda: held + _evaluate(setting, sizes, block),
        "save": lambda: held + save_terms(setting, sizes),
    }
    phases = tuple(Phase(name=name, terms=tuple(makers[name]())) for name in PHASES)
    short = _short_lived(setting, sizes, block)
    peak = max(phases, key=lambda phase: phase.num_bytes)
    reserved = reserved_range(setting, peak, short, usable_bytes)
    is_sharded = setting.sharding_kind in ("fsdp1", "fsdp2", "zero3") and setting.num_ranks > 1
    return Breakdown(
        phases=phases,
        reserved_bytes=reserved,
        process_bytes=process_range(setting, reserved, usable_bytes),
        standing=standing_of(setting),
        context_bytes=context_bytes(setting),
        overlap_bytes=int(SHARDED_BLOCK_SHARE * short.block) if is_sharded else 0,
    )


def _workspaces(setting: Setting) -> list[Term]:
    """A workspace of cuBLAS for each thread that calls it: the forward's and the backward's.

    torch/aten/src/ATen/cuda/CublasHandlePool.cpp: 4096 x 2 + 16 x 8 KiB = 8,519,680 bytes each. Measured:
    full bf16 training 17 MB above 10P, whatever the model.
    """
    return [Term(name="cuBLAS workspaces", num_bytes=2 * 8_519_680, formula="2 x 8,519,680")]


def _short_lived(setting: Setting, sizes: Sizes, block: Block) -> ShortLived:
    logits = sum(term.num_bytes for term in loss_terms(setting, sizes) if term.name == "logits and loss")
    return ShortLived(block=int(block.backward_per_token * sizes.tokens), logits=logits)


def _term(name: str, num_bytes: float, formula: str) -> list[Term]:
    return [Term(name=name, num_bytes=int(num_bytes), formula=formula)] if num_bytes >= 1 else []


def _checkpoints(setting: Setting, sizes: Sizes, *, blocks: int) -> list[Term]:
    """The blocks' inputs, which full checkpointing keeps."""
    if setting.checkpointing == "none" or setting.offload_activations:
        return []
    width = sizes.residual_bytes * setting.shape.hidden_size
    return _term("checkpoints", blocks * width * sizes.tokens, f"{blocks} x {width} T")


def _saved(setting: Setting, sizes: Sizes, block: Block, *, blocks: int) -> list[Term]:
    """What all blocks save without checkpointing, a line a kind."""
    if setting.checkpointing != "none":
        return []
    return [
        term
        for line in block.saved
        for term in _term(line.name, blocks * line.per_token * sizes.tokens, f"{line.formula}, {blocks} x T")
    ]


def _kept_gradients(setting: Setting, sizes: Sizes) -> list[Term]:
    """Gradients that are there before the backward pass: earlier micro batches', or kept between steps."""
    if setting.accumulation_steps > 1 or setting.gradients_kept or _are_in_ddp_buckets(setting):
        return _gradients(setting, sizes)
    return []


def _are_in_ddp_buckets(setting: Setting) -> bool:
    """DDP builds its buckets at the start; gradients that are views of them exist from then on."""
    return setting.sharding_kind == "none" and setting.num_ranks > 1 and setting.ddp_bucket_view


def _gradients(setting: Setting, sizes: Sizes) -> list[Term]:
    if setting.sharding.offload_optimizer and setting.sharding_kind != "none":
        return []
    return _term("gradients", gradient_bytes(setting, sizes), "p x dtype / ranks")


def _cast_cache(setting: Setting, sizes: Sizes) -> list[Term]:
    """Half copies of trained fp32 matrices: autocast keeps them until its context ends (the forward pass)."""
    if setting.pure or setting.precision == "fp32" or not _autocast_copies(setting, sizes):
        return []
    linear = setting.shape.num_layers * sizes.block_linear if sizes.trains_base else sizes.trained
    return _term("autocast weight copies", sizes.compute_bytes * linear, "c x trained matrices")


def _autocast_copies(setting: Setting, sizes: Sizes) -> bool:
    if setting.sharding_kind == "fsdp1" or setting.gathered_dtype in ("bfloat16", "float16"):
        return False
    return sizes.trained_bytes == 4 and not sizes.has_masters


def _forward(setting: Setting, sizes: Sizes, block: Block, *, is_over: bool = False) -> list[Term]:
    """The end of the forward pass: everything saved, and the loss.

    Once it is over, autocast's copies are gone where no saved product holds them.
    """
    layers = setting.shape.num_layers
    copies = [] if is_over and setting.checkpointing == "full" else _cast_cache(setting, sizes)
    return [
        *_kept_gradients(setting, sizes),
        *_checkpoints(setting, sizes, blocks=layers),
        *_saved(setting, sizes, block, blocks=layers),
        *loss_terms(setting, sizes),
        *head_copy(setting, sizes),
        *copies,
        *gathered_terms(setting, sizes, "forward"),
        *_exchange(setting, sizes),
    ]


def _exchange(setting: Setting, sizes: Sizes) -> list[Term]:
    return bucket_terms(setting, sizes)


def _backward(setting: Setting, sizes: Sizes, block: Block) -> list[Term]:
    """The worst of three moments: the loss's, the last block's (nothing freed yet), and the first's."""
    layers = setting.shape.num_layers
    at_loss = _forward(setting, sizes, block, is_over=True)
    at_last = _backward_at(setting, sizes, block, behind=layers - 1, done=0)
    at_first = _backward_at(setting, sizes, block, behind=0, done=layers)
    return max((at_loss, at_last, at_first, _root_backward(setting, sizes)), key=_total)


def _total(terms: list[Term]) -> int:
    return sum(term.num_bytes for term in terms)


def _root_backward(setting: Setting, sizes: Sizes) -> list[Term]:
    """The end: every block is done, and the embedding's gradient (whole, where it will be divided) comes."""
    return [
        *(
            _kept_gradients(setting, sizes)
            or _term("gradients", _on_card_gradients(setting, sizes), "p x dtype / ranks")
        ),
        *_checkpoints(setting, sizes, blocks=1),
        *tied_gradient(setting, sizes),
        *gathered_terms(setting, sizes, "forward"),
        *root_gradient_terms(setting, sizes),
        *_exchange(setting, sizes),
    ]


def _on_card_gradients(setting: Setting, sizes: Sizes) -> int:
    return 0 if setting.sharding.offload_optimizer else gradient_bytes(setting, sizes)


def _backward_at(setting: Setting, sizes: Sizes, block: Block, *, behind: int, done: int) -> list[Term]:
    """With `behind` blocks still to come and the gradients of `done` blocks there."""
    layers = setting.shape.num_layers
    extra = retained_stream_bytes(setting, sizes)
    kept = _kept_gradients(setting, sizes)
    grown = _on_card_gradients(setting, sizes) * done // layers
    at_work = [
        term
        for line in block.backward
        for term in _term(f"block: {line.name}", line.per_token * sizes.tokens, line.formula)
    ]
    return [
        *(kept or _term("gradients", grown, "of finished blocks")),
        *_checkpoints(setting, sizes, blocks=behind + 1),
        *_saved(setting, sizes, block, blocks=behind),
        *at_work,
        *_term("retained stream gradients", extra, "one a block: frozen weights under FSDP1"),
        *_block_casts(setting, sizes, behind=behind),
        *gathered_terms(setting, sizes, "backward"),
        *whole_gradient_terms(setting, sizes),
        *_exchange(setting, sizes),
    ]


def _block_casts(setting: Setting, sizes: Sizes, *, behind: int) -> list[Term]:
    """Half copies that saved products still hold: of all blocks without checkpointing, else of one."""
    if setting.pure or setting.precision == "fp32" or not _autocast_copies(setting, sizes):
        return []
    if not sizes.trains_base:
        return []
    blocks = behind + 1 if setting.checkpointing == "none" else 1
    return _term("autocast weight copies", blocks * sizes.block_linear * sizes.compute_bytes, "c x matrices")


def _optimizer(setting: Setting, sizes: Sizes) -> list[Term]:
    return [*_gradients(setting, sizes), *step_terms(setting, sizes), *_exchange(setting, sizes)]


def _evaluate(setting: Setting, sizes: Sizes, block: Block) -> list[Term]:
    """One batch without gradients: a block's own tensors, the logits, whole units."""
    rows = (setting.eval_batch or setting.micro_batch) * setting.seq_len
    shape = setting.shape
    width = sizes.compute_bytes * (2 * shape.intermediate_size + shape.hidden_size)
    width += 2 * sizes.residual_bytes * shape.hidden_size
    if not setting.evaluates:
        return []
    kept = _kept_gradients(setting, sizes) if setting.gradients_kept or _are_in_ddp_buckets(setting) else []
    logits = [*evaluation_terms(setting, sizes), *head_copy(setting, sizes)]
    block_terms = _term("block at work", width * rows, "2 c f + c h + 2 r h")
    return [
        *kept,
        *max(logits, block_terms, key=lambda terms: sum(term.num_bytes for term in terms)),
        *_cast_cache(setting, sizes),
        *gathered_terms(setting, sizes, "forward"),
    ]


def gradient_element_bytes(setting: Setting) -> int:
    """Bytes of one gradient element."""
    return gradient_width(setting, sizes_of(setting))


def rank_count(setting: Setting) -> int:
    """Ranks that share the work."""
    return ranks_of(setting)

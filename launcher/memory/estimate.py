"""The closed-form estimate: per rank and phase, one line a term. No torch; a fraction of a millisecond."""

from dataclasses import dataclass, replace

from launcher.memory.activations import Block, block_of
from launcher.memory.breakdown import Breakdown, Phase, Term
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
from launcher.memory.sizes import Sizes, sizes_of
from launcher.memory.standing import standing_of
from launcher.memory.states import gradient_bytes, state_terms, step_terms, tied_gradient
from launcher.memory.weights import weight_terms

Terms = list[Term]


@dataclass(kw_only=True)
class _Parts:
    """What several phases have in common, computed once."""

    setting: Setting
    sizes: Sizes
    block: Block
    loss: Terms
    kept_gradients: Terms
    casts: Terms
    while_computing: Terms
    exchange: Terms


def estimate(setting: Setting, *, usable_bytes: int | None = None) -> Breakdown:
    """Every phase of one rank; the peak is their maximum. Raises nothing: any setting has an answer.

    `usable_bytes`: the card's memory, which the ranges of reserved and process memory end at.
    """
    if setting.backend == "model_parallel":
        setting = _fullest_card(setting)
    sizes = sizes_of(setting)
    parts = _parts(setting, sizes)
    weights = weight_terms(setting, sizes)
    held = [*weights, *_workspaces(setting), *state_terms(setting, sizes)]
    forward = _forward(parts)
    phases = (
        Phase(name="load", terms=tuple(load_terms(setting, sizes) or weights)),
        Phase(name="forward", terms=(*held, *forward)),
        Phase(name="backward", terms=(*held, *_backward(parts, forward))),
        Phase(name="optimizer", terms=(*held, *_optimizer(parts))),
        Phase(name="evaluate", terms=(*held, *_evaluate(parts))),
        Phase(name="save", terms=(*held, *save_terms(setting, sizes))),
    )
    return _with_ranges(parts, phases, usable_bytes)


def _fullest_card(setting: Setting) -> Setting:
    """Layers laid over `num_ranks` cards of one process: the card with most blocks, and the whole root."""
    cards = max(1, setting.num_ranks)
    layers = -(-setting.shape.num_layers // cards)
    adapter = setting.adapter
    if adapter is not None:
        share = adapter.num_params * layers // setting.shape.num_layers
        adapter = replace(adapter, num_params=share)
    shape = replace(setting.shape, num_layers=layers)
    return replace(setting, shape=shape, adapter=adapter, num_ranks=1)


def _parts(setting: Setting, sizes: Sizes) -> _Parts:
    return _Parts(
        setting=setting,
        sizes=sizes,
        block=block_of(setting, sizes),
        loss=[*loss_terms(setting, sizes), *head_copy(setting, sizes)],
        kept_gradients=_kept_gradients(setting, sizes),
        casts=_cast_cache(setting, sizes),
        while_computing=gathered_terms(setting, sizes, "forward"),
        exchange=bucket_terms(setting, sizes),
    )


def _with_ranges(parts: _Parts, phases: tuple[Phase, ...], usable_bytes: int | None) -> Breakdown:
    setting = parts.setting
    logits = sum(term.num_bytes for term in parts.loss if term.name == "logits and loss")
    short = ShortLived(block=int(parts.block.backward_per_token * parts.sizes.tokens), logits=logits)
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


def _workspaces(setting: Setting) -> Terms:
    """A workspace of cuBLAS for each thread that calls it: the forward's and the backward's.

    torch/aten/src/ATen/cuda/CublasHandlePool.cpp: 4096 x 2 + 16 x 8 KiB = 8,519,680 bytes each (32 MiB from
    compute capability 9.0). Measured: full bf16 training 17 MB above 10P, whatever the model.
    """
    each = setting.cublas_workspace_bytes
    return [Term(name="cuBLAS workspaces", num_bytes=2 * each, formula=f"2 x {each:,}")]


def _term(name: str, num_bytes: float, formula: str) -> Terms:
    return [Term(name=name, num_bytes=int(num_bytes), formula=formula)] if num_bytes >= 1 else []


def _total(terms: Terms) -> int:
    return sum(term.num_bytes for term in terms)


# --- gradients and copies of weights -----------------------------------------------------------------


def _kept_gradients(setting: Setting, sizes: Sizes) -> Terms:
    """Gradients that are there before the backward pass: earlier micro batches', or kept between steps.

    DDP builds its buckets at the start; gradients that are views of them exist from then on.
    """
    in_buckets = setting.sharding_kind == "none" and setting.num_ranks > 1 and setting.ddp_bucket_view
    # ZeRO-3 allocates its gradients' partition at the start (stage3.py: grad_partitions_flat_buffer).
    is_allocated = in_buckets or setting.sharding_kind == "zero3"
    if setting.accumulation_steps > 1 or setting.gradients_kept or is_allocated:
        return _gradients(setting, sizes)
    return []


def _on_card_gradients(setting: Setting, sizes: Sizes) -> int:
    return 0 if setting.sharding.offload_optimizer else gradient_bytes(setting, sizes)


def _block_gradients(setting: Setting, sizes: Sizes) -> int:
    """All gradients but those of the embeddings, which come last."""
    whole, shape = _on_card_gradients(setting, sizes), setting.shape
    if not sizes.trains_base:
        return whole
    last = shape.word_embedding_params + shape.other_embedding_params
    if sizes.trained <= last or sizes.trained < shape.num_params:
        return whole  # a frozen part: the embeddings are the first that one freezes
    return whole * (sizes.trained - last) // sizes.trained


def _gradients(setting: Setting, sizes: Sizes) -> Terms:
    return _term("gradients", _on_card_gradients(setting, sizes), "p x dtype / ranks")


def _autocast_copies(setting: Setting, sizes: Sizes) -> bool:
    """Whether autocast casts trained fp32 weights; FSDP's mixed precision gathers them cast."""
    if setting.pure or setting.precision == "fp32" or setting.sharding_kind == "fsdp1":
        return False
    is_half = setting.gathered_dtype in ("bfloat16", "float16")
    return sizes.trained_bytes == 4 and not sizes.has_masters and not is_half


def _cast_cache(setting: Setting, sizes: Sizes) -> Terms:
    """Half copies of trained fp32 matrices: autocast keeps them until its context ends (the forward pass).

    torch/aten/src/ATen/autocast_mode.cpp, cached_cast: leaves that require a gradient, nothing else. The
    head's copy is counted with the loss. FSDP2's and ZeRO-3's gathered weights are cached all the same.
    Without the cache saved products hold them, or checkpointing lets them go block by block.
    """
    is_dropped = not setting.autocast_cache and setting.checkpointing != "none"
    if is_dropped or not _autocast_copies(setting, sizes):
        return []
    linear = setting.shape.num_layers * sizes.block_linear if sizes.trains_base else sizes.trained
    return _term("autocast weight copies", sizes.compute_bytes * linear, "c x trained matrices")


def _block_casts(parts: _Parts, *, behind: int) -> Terms:
    """Half copies that saved products still hold: of all blocks without checkpointing, else of one."""
    sizes = parts.sizes
    if not sizes.trains_base or not _autocast_copies(parts.setting, sizes):
        return []
    blocks = behind + 1 if parts.setting.checkpointing == "none" else 1
    return _term("autocast weight copies", blocks * sizes.block_linear * sizes.compute_bytes, "c x matrices")


# --- phases ------------------------------------------------------------------------------------------


def _checkpoints(parts: _Parts, *, blocks: int) -> Terms:
    """The blocks' inputs, which full checkpointing keeps."""
    setting, sizes = parts.setting, parts.sizes
    if setting.checkpointing == "none" or setting.offload_activations:
        return []
    width = sizes.residual_bytes * setting.shape.hidden_size
    return _term("checkpoints", blocks * width * sizes.tokens, f"{blocks} x {width} T")


def _saved(parts: _Parts, *, blocks: int) -> Terms:
    """What blocks save without checkpointing, a line a kind."""
    if parts.setting.checkpointing != "none":
        return []
    tokens = parts.sizes.tokens
    return [
        term
        for line in parts.block.saved
        for term in _term(line.name, blocks * line.per_token * tokens, f"({line.formula}) x {blocks} T")
    ]


def _embeddings(parts: _Parts) -> Terms:
    """Encoders normalise and drop out their embeddings: the norm's input and a mask; r h + 1 h."""
    setting, sizes = parts.setting, parts.sizes
    is_open = setting.graph_blocks in (None, setting.shape.num_layers)
    if setting.shape.is_decoder or not sizes.trains_base or not is_open:
        return []
    width = sizes.residual_bytes + (1 if setting.shape.hidden_dropout else 0)
    return _term("embeddings", width * setting.shape.hidden_size * sizes.tokens, f"{width} h T")


def _at_the_end(parts: _Parts) -> Terms:
    """Without logits the peak lies inside the last block: its stream and outputs beside what is saved."""
    setting, sizes = parts.setting, parts.sizes
    if setting.shape.task == "causal_lm":
        return []
    width = 3 * sizes.residual_bytes + 2 * sizes.compute_bytes
    return _term("last block's outputs", width * setting.shape.hidden_size * sizes.tokens, "(3 r + 2 c) h T")


def _lasting(parts: _Parts) -> Terms:
    """DDP's and ZeRO-3's buckets are always there; ZeRO-1/2 make their own for each backward pass."""
    return [] if parts.setting.sharding_kind in ("zero1", "zero2") else parts.exchange


def _graph_blocks(setting: Setting) -> int:
    """Blocks that keep something for the backward pass."""
    return setting.shape.num_layers if setting.graph_blocks is None else setting.graph_blocks


def _forward(parts: _Parts) -> Terms:
    """The end of the forward pass: everything saved, and the loss."""
    layers = _graph_blocks(parts.setting)
    return [
        *parts.kept_gradients,
        *_checkpoints(parts, blocks=layers),
        *_saved(parts, blocks=layers),
        *_embeddings(parts),
        *_at_the_end(parts),
        *parts.loss,
        *parts.casts,
        *parts.while_computing,
        *_lasting(parts),
    ]


def _backward(parts: _Parts, forward: Terms) -> Terms:
    """The worst moment: the loss's, the last block's (nothing freed yet), the first's, the embedding's.

    At the loss's, autocast's copies are gone where no saved product holds them.
    """
    layers = _graph_blocks(parts.setting)
    is_free = parts.setting.checkpointing != "none"
    made = [] if _lasting(parts) else parts.exchange
    at_loss = [*made, *(term for term in forward if not (is_free and term in parts.casts))]
    if not layers:
        return max((at_loss, _root_backward(parts)), key=_total)
    at_last = _backward_at(parts, behind=layers - 1, done=0)
    at_first = _backward_at(parts, behind=0, done=layers)
    return max((at_loss, at_last, at_first, _root_backward(parts)), key=_total)


def _backward_at(parts: _Parts, *, behind: int, done: int) -> Terms:
    """With `behind` blocks still to come and the gradients of `done` blocks there."""
    setting, sizes = parts.setting, parts.sizes
    grown = _block_gradients(setting, sizes) * done // max(1, _graph_blocks(setting))
    at_work = [
        term
        for line in parts.block.backward
        for term in _term(f"block: {line.name}", line.per_token * sizes.tokens, line.formula)
    ]
    retained = retained_stream_bytes(setting, sizes)
    return [
        *(parts.kept_gradients or _term("gradients", grown, "of finished blocks")),
        *_checkpoints(parts, blocks=behind + 1),
        *_saved(parts, blocks=behind),
        *at_work,
        *_term("retained stream gradients", retained, "one a block: frozen weights under FSDP1"),
        *_block_casts(parts, behind=behind),
        *gathered_terms(setting, sizes, "backward"),
        *whole_gradient_terms(setting, sizes),
        *parts.exchange,
    ]


def _root_backward(parts: _Parts) -> Terms:
    """The end: every block is done, and the embedding's gradient (whole, where it will be divided) comes."""
    setting, sizes = parts.setting, parts.sizes
    whole_root = root_gradient_terms(setting, sizes)
    blocks = _term("gradients", _block_gradients(setting, sizes), "of the blocks / ranks")
    return [
        *(parts.kept_gradients or (blocks if whole_root else _gradients(setting, sizes))),
        *_checkpoints(parts, blocks=1),
        *tied_gradient(setting, sizes),
        *parts.while_computing,
        *whole_root,
        *parts.exchange,
    ]


def _optimizer(parts: _Parts) -> Terms:
    setting, sizes = parts.setting, parts.sizes
    return [*_gradients(setting, sizes), *step_terms(setting, sizes), *_lasting(parts)]


def _evaluate(parts: _Parts) -> Terms:
    """One batch without gradients: a block's own tensors or the logits, whole units."""
    setting, sizes = parts.setting, parts.sizes
    if not setting.evaluates:
        return []
    rows = (setting.eval_batch or setting.micro_batch) * setting.seq_len
    shape = setting.shape
    width = sizes.compute_bytes * (2 * shape.intermediate_size + shape.hidden_size)
    width += 2 * sizes.residual_bytes * shape.hidden_size
    if setting.attention == "eager":
        width += (4 + sizes.compute_bytes) * shape.num_heads * setting.seq_len
    logits = [*evaluation_terms(setting, sizes), *head_copy(setting, sizes)]
    block = _term("block at work", width * rows, "2 c f + c h + 2 r h")
    return [
        *([] if setting.accumulation_steps > 1 and not setting.gradients_kept else parts.kept_gradients),
        *max(logits, block, key=_total),
        *(parts.casts if setting.autocast_cache else []),
        *parts.while_computing,
    ]

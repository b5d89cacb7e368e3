"""The closed-form estimate: per rank and phase, one line a term. No torch; a fraction of a millisecond."""

from dataclasses import replace

from launcher.memory.activations import Line
from launcher.memory.backward import backward, place
from launcher.memory.breakdown import Breakdown, Phase, Term, Terms, term, total
from launcher.memory.gathered import (
    adapters_are_units,
    first_gather,
    gathered_terms,
    staging_terms,
)
from launcher.memory.logits import evaluation_terms, head_copy
from launcher.memory.reserved import (
    SHARDED_BLOCK_SHARE,
    ShortLived,
    context_bytes,
    process_range,
    reserved_range,
)
from launcher.memory.setting import Setting
from launcher.memory.sizes import BYTES, sizes_of
from launcher.memory.standing import standing_of
from launcher.memory.states import state_terms, step_terms
from launcher.memory.step_parts import (
    StepParts,
    block_casts,
    checkpoints,
    embeddings,
    gradients,
    kept_by_block,
    saved,
    step_parts,
    streams_in_hand,
)
from launcher.memory.takeover import load_terms, save_terms
from launcher.memory.weights import weight_terms
from launcher.memory.zero3_terms import gathers, whole_of


def estimate(setting: Setting, *, usable_bytes: int | None = None) -> Breakdown:
    """Every phase of one rank; the peak is their maximum. Raises nothing: any setting has an answer.

    `usable_bytes`: the card's memory, which the ranges of reserved and process memory end at.
    """
    if setting.backend == "model_parallel":
        setting = _fullest_card(setting)
    sizes = sizes_of(setting)
    parts = step_parts(setting, sizes)
    weights = weight_terms(setting, sizes)
    held = [*weights, *_workspaces(setting), *state_terms(setting, sizes), *staging_terms(setting, sizes)]
    phases = (
        Phase(name="load", terms=tuple(load_terms(setting, sizes))),
        Phase(name="forward", terms=(*held, *_forward(parts))),
        Phase(name="backward", terms=(*held, *backward(parts, _at_loss(parts, parts.loss, copies=1)))),
        Phase(name="optimizer", terms=(*held, *_optimizer(parts))),
        Phase(name="evaluate", terms=(*held, *_evaluate(parts))),
        Phase(name="save", terms=(*held, *_save(parts))),
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


def _with_ranges(parts: StepParts, phases: tuple[Phase, ...], usable_bytes: int | None) -> Breakdown:
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


def _lasting(parts: StepParts) -> Terms:
    """DDP's and ZeRO-3's buckets are always there; ZeRO-1/2 make their own for each backward pass."""
    return [] if parts.setting.sharding_kind in ("zero1", "zero2") else parts.exchange


def _forward(parts: StepParts) -> Terms:
    """The worst of four moments: the embedding's gathering, the last block's, that block at work, the loss.

    FSDP2 gathers a block beside the flat buffer that the unit before it came in. ZeRO-3 has gathered most of
    all at some block, which need not be the last.
    """
    setting, sizes = parts.setting, parts.sizes
    before = [*parts.kept_gradients, *_lasting(parts)]
    flat = 0 if adapters_are_units(setting, sizes) else 1
    at_work = [
        [
            *_kept(parts, blocks=index + 1),
            *_last_block(parts),
            *gathered_terms(setting, sizes, copies=1 + flat, at=("forward", place(parts, index))),
        ]
        for index in _forward_ends(parts)
    ]
    handed_over = [
        [
            *_kept(parts, blocks=index, inputs=index + 1),
            *streams_in_hand(parts),
            *gathered_terms(setting, sizes, copies=2 + flat, at=("begun", place(parts, index))),
        ]
        for index in _forward_ends(parts)
    ]
    first = [*before, *_at_embeddings(parts, sizes.tokens)]
    return max(_at_loss(parts, parts.forward_loss, copies=flat), *at_work, *handed_over, first, key=total)


def _forward_ends(parts: StepParts) -> list[int]:
    """The last block, and ZeRO-3's worst."""
    last = max(0, parts.graph_blocks - 1)
    if not gathers(parts.setting) or not last:
        return [last]
    found, width = whole_of(parts.setting, parts.sizes), parts.sizes.weight_bytes
    kept = kept_by_block(parts)
    sides = (found.begun, found.forward)
    worst = {max(range(last), key=lambda i: i * kept + width * side[place(parts, i)]) for side in sides}
    return sorted({last} | worst)


def _kept(parts: StepParts, *, blocks: int, inputs: int | None = None) -> Terms:
    """What the forward pass leaves behind: `inputs` checkpoints, or what `blocks` blocks save."""
    inputs = blocks if inputs is None else inputs
    is_whole = inputs >= parts.graph_blocks
    casts = block_casts(parts, behind=blocks) if parts.casts else []
    return [
        *parts.kept_gradients,
        *_lasting(parts),
        *checkpoints(parts, blocks=inputs),
        *embeddings(parts),
        *(parts.casts if is_whole else casts),
        *saved(parts, blocks=blocks),
    ]


def _at_loss(parts: StepParts, loss: Terms, *, copies: int) -> Terms:
    """Everything saved, and the loss; `copies` of a block: its flat buffer, left over or on its way back."""
    gathered = gathered_terms(parts.setting, parts.sizes, copies=copies, at=("loss", 0))
    return [*_kept(parts, blocks=parts.graph_blocks), *loss, *gathered]


def _at_embeddings(parts: StepParts, tokens: int) -> Terms:
    """FSDP2 gathers the unit that holds them. BERT's three are summed, and normalised in fp32."""
    setting, sizes = parts.setting, parts.sizes
    gathered = first_gather(setting, sizes)
    if not gathered:
        return []
    held, r = BYTES[setting.weights_dtype], sizes.residual_bytes
    width = 3 * held + r + (r if held < r else 0) if setting.shape.is_post_norm else held
    return [
        *gathered,
        *term("embeddings at work", width * setting.shape.hidden_size * tokens, f"{width} h T"),
    ]


def _last_block(parts: StepParts) -> Terms:
    """The last block at work: beside what it saves, or alone where its checkpoint is all that stays."""
    is_alone = parts.setting.recomputes
    return [
        *streams_in_hand(parts),
        *_working(parts, parts.block.alone if is_alone else parts.block.forward, parts.sizes.tokens),
    ]


def _working(parts: StepParts, lines: tuple[Line, ...], tokens: int) -> Terms:
    return [each for line in lines for each in term(line.name, line.per_token * tokens, line.formula)]


def _optimizer(parts: StepParts) -> Terms:
    setting, sizes = parts.setting, parts.sizes
    return [*gradients(setting, sizes), *step_terms(setting, sizes), *_lasting(parts)]


def _save(parts: StepParts) -> Terms:
    """What is gathered to be written, beside gradients that stay: DDP's buckets, ZeRO-3's partition."""
    is_kept = parts.setting.accumulation_steps == 1 or parts.setting.gradients_kept
    return [
        *(parts.kept_gradients if is_kept else []),
        *_lasting(parts),
        *save_terms(parts.setting, parts.sizes),
    ]


def _most_gathered(parts: StepParts) -> int:
    """The block at which ZeRO-3 holds most in a forward pass."""
    if not gathers(parts.setting):
        return 0
    found = whole_of(parts.setting, parts.sizes).forward
    return max(range(len(found)), key=lambda index: found[index])


def _evaluate(parts: StepParts) -> Terms:
    """One batch without gradients: the embedding's gathering, a block's own tensors, or the logits."""
    setting, sizes = parts.setting, parts.sizes
    if not setting.evaluates:
        return []
    tokens = (setting.eval_batch or setting.micro_batch) * setting.seq_len
    streams = (
        2 * sizes.residual_bytes * setting.shape.hidden_size * tokens if setting.shape.is_post_norm else 0
    )
    flat, casts = (
        0 if adapters_are_units(setting, sizes) else 1,
        parts.casts if setting.autocast_cache else [],
    )
    logits = [
        *evaluation_terms(setting, sizes),
        *(head_copy(setting, sizes) if setting.autocast_cache or setting.loss != "plain" else []),
        *casts,
        *gathered_terms(setting, sizes, copies=flat, at=("loss", 0)),
    ]
    block = [
        *term("streams in hand", streams, "2 r h T"),
        *_working(parts, parts.block.alone, tokens),
        *casts,
        *gathered_terms(setting, sizes, copies=1 + flat, at=("forward", _most_gathered(parts))),
    ]
    handed_over = [
        *term("streams in hand", streams, "2 r h T"),
        *gathered_terms(setting, sizes, copies=2 + flat),
    ]
    return [
        *([] if setting.accumulation_steps > 1 and not setting.gradients_kept else parts.kept_gradients),
        *_lasting(parts),
        *max(logits, block, handed_over, _at_embeddings(parts, tokens), key=total),
    ]

"""The backward pass: block by block from the last one, the embeddings' gradients at the end.

Gradients appear while checkpoints or saved tensors go, both in straight lines from block to block, so the
worst moment lies at an end: the loss, the last block, the one before it (FSDP2: the first with gradients on
their way), the second and the first, or the embeddings.
"""

from launcher.memory.block_moments import Moment
from launcher.memory.breakdown import Terms, term, total
from launcher.memory.gathered import (
    adapters_are_units,
    gathered_terms,
    next_unit,
    retained_stream_bytes,
    unreduced_terms,
    whole_gradient_terms,
)
from launcher.memory.states import tied_gradient
from launcher.memory.step_parts import (
    StepParts,
    block_casts,
    checkpoints,
    embeddings,
    gradients,
    kept_by_block,
    saved,
)
from launcher.memory.zero3_terms import gathers, whole_of


def backward(parts: StepParts, at_loss: Terms) -> Terms:
    """The worst moment. At the loss's, autocast's copies are gone where no saved product holds them.

    ZeRO-1 and 2 make their buckets when the first gradient is there.
    """
    is_free = parts.setting.recomputes
    moments = [[each for each in at_loss if not (is_free and each in parts.casts)]]
    for index in _ends(parts):
        moments += [_block_at_work(parts, index, moment) for moment in parts.block.moments]
        moments.append(_block_done(parts, index))
    return max((*moments, _embeddings_done(parts)), key=total)


def _ends(parts: StepParts) -> list[int]:
    """The blocks at whose work a worst moment may lie: first and last, under FSDP2 their neighbours too.

    ZeRO-3: where what is gathered and what is saved are most together.
    """
    layers = parts.graph_blocks
    if not layers:
        return []
    near = {min(1, layers - 1), max(0, layers - 2)} if parts.gradients.is_whole_first else set()
    if gathers(parts.setting):
        found, width = whole_of(parts.setting, parts.sizes).backward, parts.sizes.weight_bytes
        kept = kept_by_block(parts)
        near = {max(range(layers), key=lambda i: i * kept + width * found[place(parts, i)])}
    return sorted({0, layers - 1} | near)


def place(parts: StepParts, index: int) -> int:
    """The number of a block, which `index` counts from the lowest one that keeps anything."""
    return max(0, parts.setting.shape.num_layers - max(1, parts.graph_blocks) + index)


def _common(parts: StepParts, *, inputs: int, below: int) -> Terms:
    """What is there at any moment: `inputs` checkpoints, or what `below` blocks have saved."""
    retained = retained_stream_bytes(parts.setting, parts.sizes)
    return [
        *checkpoints(parts, blocks=inputs),
        *saved(parts, blocks=below),
        *embeddings(parts),
        *term("retained stream gradients", retained, "one a block: frozen weights under FSDP1"),
        *parts.exchange,
    ]


def _grown(parts: StepParts, index: int, own_share: float) -> Terms:
    """Gradients when the block `index` has so much of its own: the head's, of finished blocks, its own."""
    found, done = parts.gradients, parts.graph_blocks - 1 - index
    if parts.kept_gradients:
        own = found.head_held + found.own_held(own_share) if found.is_whole_first else 0
        return [*parts.kept_gradients, *term("whole gradients", own, "head's and the block's own")]
    held = found.head_held + found.blocks_held(done) + found.own_held(own_share)
    return term("gradients", held, "head's, finished blocks' / ranks, the block's own")


def _block_at_work(parts: StepParts, index: int, moment: Moment) -> Terms:
    setting, sizes = parts.setting, parts.sizes
    at_work = [
        each
        for line in moment.lines
        for each in term(f"block: {line.name}", line.per_token * sizes.tokens, line.formula)
    ]
    reaches = moment.reaches_adapters or not adapters_are_units(setting, sizes)
    return [
        *_common(parts, inputs=index + 1, below=index),
        *_grown(parts, index, moment.gradient_share),
        *at_work,
        *block_casts(parts, behind=index + 1 - moment.gradient_share),
        *gathered_terms(
            setting,
            sizes,
            ahead=next_unit(setting, sizes, index) if reaches else 0,
            at=("backward", place(parts, index)),
        ),
        *unreduced_terms(setting, sizes, parts.gradients, has_sent=index < parts.graph_blocks - 1),
        *whole_gradient_terms(setting, sizes),
    ]


def _block_done(parts: StepParts, index: int) -> Terms:
    """A block's gradients are complete, its tensors gone but for the stream's gradient; FSDP2 sends them."""
    setting, sizes = parts.setting, parts.sizes
    if not parts.gradients.is_whole_first:
        return []
    width = sizes.residual_bytes * setting.shape.hidden_size
    return [
        *_common(parts, inputs=index, below=index),
        *([] if setting.recomputes else block_casts(parts, behind=index)),
        *_grown(parts, index, 1.0),
        *term("stream gradient", width * sizes.tokens, "r h T"),
        *gathered_terms(setting, sizes, copies=0, ahead=next_unit(setting, sizes, index)),
        *unreduced_terms(setting, sizes, parts.gradients, has_sent=True),
    ]


def _embeddings_done(parts: StepParts) -> Terms:
    """Every block is done, and the embedding's gradient comes: whole, where it will be divided."""
    setting, sizes = parts.setting, parts.sizes
    found, width = parts.gradients, sizes.residual_bytes * setting.shape.hidden_size
    stream = term("stream gradient", width * sizes.tokens, "r h T: of the embeddings' output")
    blocks = term("gradients", found.blocks_held(parts.graph_blocks), "of the blocks / ranks")
    if not found.is_whole_first:
        whole_root = whole_gradient_terms(setting, sizes, of_root=True)
        return [
            *(parts.kept_gradients or (blocks if whole_root else gradients(setting, sizes))),
            *stream,
            *tied_gradient(setting, sizes),
            *gathered_terms(setting, sizes, at=("end", 0)),
            *whole_root,
            *parts.exchange,
        ]
    return [
        *(parts.kept_gradients or blocks),
        *stream,
        *tied_gradient(setting, sizes),
        *term("whole root gradient", found.head + found.embeddings, "head and embeddings x dtype"),
        *gathered_terms(setting, sizes, copies=0, with_embeddings=True, at=("end", 0)),
        *unreduced_terms(setting, sizes, found, has_sent=True),
    ]

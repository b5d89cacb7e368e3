"""What trains in each phase of a freezing plan, counted from a configuration's shape. No torch.

Embeddings, blocks, the linear layers inside them, pooler and classifier have known names and sizes; norms and
whatever else a block holds are one more piece of it. A name or glob over those is counted when the model is
there: a phase is then never counted for less than what is known to be open.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from launcher.adapters.open_parts import block_of, is_embedding, resolve
from launcher.errors import BadValue
from launcher.models.shape import ModelShape
from launcher.recipe.freezing import SCHEDULE, FreezeOptions, Parts


@dataclass(frozen=True, kw_only=True)
class PhaseCount:
    """From `epoch` on `trained_params` elements train; blocks below the top `graph_blocks` keep nothing.

    `uncounted` are parts that only the real model can resolve.
    """

    epoch: float
    trained_params: int
    graph_blocks: int
    uncounted: tuple[str, ...] = ()


def named_sizes(shape: ModelShape) -> dict[str, int]:
    """The parameters that a shape knows by name, and their elements."""
    pooler = shape.head_params - shape.classifier_params
    found = {
        "embeddings.word_embeddings.weight": shape.word_embedding_params,
        "embeddings.other_embeddings.weight": shape.other_embedding_params,
    }
    for index in range(shape.num_layers):
        found |= _block(f"{shape.blocks_path or 'layers'}.{index}", shape)
    found["final_norm.weight"] = shape.final_norm_params
    found["classifier.weight"] = shape.classifier_params
    found["pooler.dense.weight" if shape.task == "classification" else "lm_head.weight"] = pooler
    return {name: size for name, size in found.items() if size}


def _block(path: str, shape: ModelShape) -> dict[str, int]:
    found = {f"{path}.norms.weight": shape.block_other_params}
    for linear in shape.linears:
        found[f"{path}.{linear.name}.weight"] = linear.weight_params
        if linear.bias:
            found[f"{path}.{linear.name}.bias"] = linear.out_features
    return found


def phase_counts(options: FreezeOptions, shape: ModelShape) -> list[PhaseCount]:
    """One entry a phase, in the order of epochs; cumulative."""
    sizes = named_sizes(shape)
    closed, missed = _found(options.modules, sizes)
    opened: set[str] = set()
    uncounted = [*missed]
    counts = []
    for epoch, parts in options.epochs() or [(0.0, ("all",))]:
        more, missed = _found(parts, sizes)
        opened |= more - closed
        uncounted += missed
        counts.append(
            PhaseCount(
                epoch=epoch,
                trained_params=sum(sizes[name] for name in opened),
                graph_blocks=_graph_blocks(opened, shape.num_layers),
                uncounted=tuple(uncounted),
            )
        )
    return counts


def _found(parts: Parts, sizes: dict[str, int]) -> tuple[set[str], list[str]]:
    found: set[str] = set()
    missed = []
    for part in parts:
        try:
            found |= resolve((part,), [*sizes], where=SCHEDULE).names
        except BadValue:
            missed.append(part)  # the real model's names have the last word
    return found, missed


def _graph_blocks(opened: set[str], num_layers: int) -> int:
    if any(is_embedding(name) for name in opened):
        return num_layers
    blocks = [index for name in opened if (index := block_of(name)) is not None]
    return num_layers - min(blocks, default=num_layers)


def reached(counts: Sequence[PhaseCount], num_epochs: float | None) -> list[PhaseCount]:
    """The phases that begin before the run ends; all of them where its length in epochs is not known."""
    return [each for each in counts if num_epochs is None or each.epoch < num_epochs] or [counts[0]]

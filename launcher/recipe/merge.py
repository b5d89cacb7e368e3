"""Layers of given values laid over one another: parents, the recipe, the command line, the starter."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from launcher.errors import Problem
from launcher.recipe.keys import PIECES, fields_of, is_free
from launcher.recipe.provenance import Leaf
from launcher.recipe.suggest import unknown_key
from launcher.recipe.translate import Layer

Leaves = dict[tuple[str, ...], Leaf]

# What says where the parent's model or rows lie means nothing for another model or other rows.
BELONGS_TO: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {
    ("model", "model_name_or_path"): (
        ("model", "pip_package"),
        ("model", "gguf_file"),
        ("model", "revision"),
    ),
    ("data", "train_file"): (("data", "eval_file"),),
}
# Mappings whose entries mean something only together: a layer that gives one gives all of it.
REPLACED: tuple[tuple[str, ...], ...] = (("freeze", "schedule"),)


@dataclass(kw_only=True)
class Merged:
    """The values that won, and everything found in any layer."""

    leaves: Leaves = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    accumulation: list[Leaf] = field(default_factory=list)


def merge(layers: Iterable[Layer]) -> Merged:
    """Lay every layer over the ones before it."""
    merged = Merged()
    for layer in layers:
        merged.notices += layer.notices
        merged.problems += layer.problems
        merged.accumulation += layer.accumulation
        for section in PIECES:
            _switch(section, layer, merged)
        for path in BELONGS_TO:
            _replace(path, layer, merged)
        _clear(layer, merged)
        merged.leaves |= layer.leaves
    for section in PIECES:
        _refuse_foreign(section, merged)
    merged.problems += [_accumulation(leaf, merged.leaves) for leaf in merged.accumulation]
    return merged


def _clear(layer: Layer, merged: Merged) -> None:
    """A mapping given as a whole (`columns: {}`) leaves nothing of the inherited one."""
    given = {path[:-1] for path in layer.leaves}
    for whole in (*filter(is_free, layer.leaves), *(path for path in REPLACED if path in given)):
        for path in [path for path in merged.leaves if path[:-1] == whole]:
            del merged.leaves[path]


def _switch(section: str, layer: Layer, merged: Merged) -> None:
    """Drop inherited options that a newly chosen piece does not have, and say so."""
    choice, known = PIECES[section]
    chosen = layer.leaves.get((section, choice))
    if chosen is None or chosen.value not in known.names():
        return
    kept = fields_of(section, chosen.value)
    dropped = [leaf for path, leaf in merged.leaves.items() if path[0] == section and path[1] not in kept]
    for leaf in dropped:
        del merged.leaves[leaf.path]
    if dropped:
        keys = ", ".join(leaf.path[-1] for leaf in dropped)
        what = f"{section}.{choice} is {chosen.value} here: {keys} of the parent left out"
        merged.notices.append(f"{chosen.origin.place()}  {what}")


def _replace(path: tuple[str, ...], layer: Layer, merged: Merged) -> None:
    """Drop what belonged to the inherited model or rows when others are named, and say so."""
    new, old = layer.leaves.get(path), merged.leaves.get(path)
    if new is None or old is None or new.value == old.value:
        return
    inherited = [key for key in BELONGS_TO[path] if key in merged.leaves and key not in layer.leaves]
    for key in inherited:
        dropped = merged.leaves.pop(key)
        what = f"{dropped.key}: {dropped.typed} belongs to {old.typed}, left out"
        merged.notices.append(f"{new.origin.place()}  {what}")


def _refuse_foreign(section: str, merged: Merged) -> None:
    """Report options that another piece of this section has, but not the chosen one."""
    choice, known = PIECES[section]
    chosen = merged.leaves.get((section, choice))
    piece = chosen.value if chosen else {"adapter": "full", "backend": "single_gpu"}[section]
    if piece not in known.names():
        return
    kept = fields_of(section, piece)
    for leaf in [leaf for path, leaf in merged.leaves.items() if path[0] == section and path[1] not in kept]:
        merged.problems.append(unknown_key(leaf, piece))
        del merged.leaves[leaf.path]


def _accumulation(leaf: Leaf, leaves: Leaves) -> Problem:
    """Accumulation is solved, never given: the global batch that the three numbers make."""
    micro = _number(leaves, ("training", "per_device_train_batch_size"))
    cards = _number(leaves, ("hardware", "gpus")) or 1
    steps = leaf.value if isinstance(leaf.value, int) and leaf.value > 0 else None
    size = micro * steps * cards if micro and steps else None
    sum_ = f"{micro or 'rows of one card'} x {leaf.typed} accumulation x {cards} card{'s' * (cards > 1)}"
    given = leaves.get(("training", "global_batch_size"))
    why = "accumulation is solved from the global batch and the cards found"
    return Problem(
        where=leaf.origin.place(),
        what=f"{leaf.key}: '{leaf.typed}' is not taken: {why}",
        right=f"training.global_batch_size{f': {size}' if size else ''} ({sum_})",
        type="remove this line" if given else _assignment(leaf, size),
    )


def _assignment(leaf: Leaf, size: int | None) -> str:
    written = leaf.origin.kind not in ("command line", "starter")
    return f"global_batch_size{': ' if written else '='}{size or '...'}"


def _number(leaves: Leaves, path: tuple[str, ...]) -> int | None:
    leaf = leaves.get(path)
    return leaf.value if leaf and isinstance(leaf.value, int) and leaf.value > 0 else None

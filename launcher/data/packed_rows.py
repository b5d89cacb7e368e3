"""Several samples of a language model in one row."""

from dataclasses import replace

from launcher.data.pack import best_fit_decreasing
from launcher.data.ragged import Ragged, offsets_of
from launcher.data.token_store import TokenStore, marks_of


def packed(store: TokenStore) -> TokenStore:
    """The rows of a language model's store, several to a row, none longer than before allowed.

    A row of the result is what a batch counts. Its samples keep their own targets: the first id of each
    is predicted by nothing.
    """
    order, counts = best_fit_decreasing(store.lengths, store.max_length)
    rows = Ragged(values=store.input_ids, offsets=store.offsets).take(order)
    before = offsets_of(counts)
    trained = store.trained
    if trained is not None:
        trained = marks_of(Ragged(values=store.input_ids, offsets=store.offsets), trained, order)
    targets = offsets_of(store.num_targets[order])
    offsets = rows.offsets[before]
    filled = len(rows.values) / max(1, len(counts) * store.max_length)
    said = f"packing: {len(store):,} samples in {len(counts):,} rows of up to {store.max_length} tokens, "
    said += f"{filled:.1%} full; a batch counts packed rows"
    return replace(
        store,
        input_ids=rows.values,
        offsets=offsets,
        trained=trained,
        num_targets=targets[before[1:]] - targets[before[:-1]],
        segments=rows.offsets,
        notices=(*store.notices, said),
    )

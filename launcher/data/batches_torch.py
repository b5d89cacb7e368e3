"""Token rows as padded tensors: the micro batches of a global step, and the batches of an evaluation."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from launcher.data import workers_torch
from launcher.data.order import RowOrder, cut, spread
from launcher.data.ragged import Float32, Int64, positions
from launcher.data.tokens import TokenStore
from launcher.facts import StepSettings

IGNORED = -100
Batch = dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Window:
    """One global step as one rank sees it.

    `num_targets`, `num_rows` and `num_tokens` (without padding) count the whole global step over all
    ranks. `epoch` is how many passes over the rows are done once this step is.
    """

    step: int
    epoch: float
    micro_batches: list[Batch]
    num_targets: int
    num_rows: int
    num_tokens: int

    def pin_memory(self) -> "Window":
        """The same in page-locked memory; called by the loader's pinning thread."""
        pinned = [
            {name: tensor.pin_memory() for name, tensor in batch.items()} for batch in self.micro_batches
        ]
        return replace(self, micro_batches=pinned)


def collate(
    store: TokenStore, rows: Int64, pad_token_id: int, pad_to_multiple_of: int | None = None
) -> Batch:
    """Those rows, padded on the right to the longest of them: input_ids, attention_mask, labels.

    Packed rows also have position_ids: from 0 in every sample, and in the padding. Pairs also have
    token_type_ids where the model learns them, 0 in the padding as the tokenizers have it.

    Labels are class ids [rows], or ids [rows, length] with -100 where not trained, not shifted. What is
    padding is known by position, never by id: an end token stays a target where it is also the pad.
    Without rows: one row of padding that no loss counts.
    """
    if not len(rows):
        return _nothing(store, pad_token_id, pad_to_multiple_of)
    lengths = store.offsets[rows + 1] - store.offsets[rows]
    width = _width(int(lengths.max()), pad_to_multiple_of, store.max_length)
    filled = np.arange(width) < lengths[:, None]
    flat = positions(store.offsets[rows], lengths)
    ids = np.full(filled.shape, pad_token_id, dtype=np.int64)
    ids[filled] = store.input_ids[flat]
    batch = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(filled.astype(np.int64))}
    if store.segments is not None:
        batch["position_ids"] = torch.from_numpy(_places(store.segments, flat, filled))
    if store.token_types is not None:
        types = np.zeros(filled.shape, dtype=np.int64)
        types[filled] = store.token_types[flat]
        batch["token_type_ids"] = torch.from_numpy(types)
    labels = _labels(store, rows, flat, filled)
    return batch if labels is None else batch | {"labels": torch.from_numpy(labels)}


def _places(segments: Int64, flat: Int64, filled: Any) -> Int64:
    """How far each id is from its sample's first; padding counts from 0 as a sample of its own."""
    starts = segments[np.searchsorted(segments, flat, side="right") - 1]
    places: Int64 = np.arange(filled.shape[1]) - filled.sum(1, keepdims=True)
    places[filled] = flat - starts
    return places


def _labels(store: TokenStore, rows: Int64, flat: Int64, filled: Any) -> Int64 | Float32 | None:
    if store.task != "causal_lm":
        return None if store.labels is None else store.labels[rows]
    targets = store.input_ids[flat].astype(np.int64)
    labels = np.full(filled.shape, IGNORED, dtype=np.int64)
    labels[filled] = targets if store.trained is None else np.where(store.trained[flat], targets, IGNORED)
    if store.segments is not None:  # a sample's first id is not the sample before's to predict
        first = store.segments[np.searchsorted(store.segments, flat, side="right") - 1] == flat
        labels[filled] = np.where(first, IGNORED, labels[filled])
    return labels


def _nothing(store: TokenStore, pad_token_id: int, pad_to_multiple_of: int | None) -> Batch:
    """A rank without rows still runs the step. The mask is 1: a fully masked row may turn into NaN."""
    shape = (1, _width(2, pad_to_multiple_of, store.max_length))
    ids, mask = torch.full(shape, pad_token_id), torch.ones(shape, dtype=torch.int64)
    batch = {"input_ids": ids, "attention_mask": mask}
    if store.segments is not None:
        batch["position_ids"] = torch.arange(shape[1])[None]
    if store.token_types is not None:
        batch["token_type_ids"] = torch.zeros(shape, dtype=torch.int64)
    if store.task != "causal_lm":
        return batch if store.labels is None else batch | {"labels": _no_label(store.labels)}
    return batch | {"labels": torch.full(shape, IGNORED)}


def _no_label(labels: Int64 | Float32) -> Tensor:
    """A label that no loss counts: -100 for a class; NaN where labels are numbers, all of which may occur."""
    if labels.dtype == np.int64:
        return torch.full((1,), IGNORED)
    return torch.full((1, *labels.shape[1:]), torch.nan)


def _width(longest: int, multiple: int | None, max_length: int) -> int:
    """`longest`, rounded up, but not beyond what the model can take."""
    rounded = -(-longest // (multiple or 1)) * (multiple or 1)
    return max(longest, min(rounded, max_length))


class _Windows(Dataset[Window]):
    """Global steps by their number, for one rank."""

    def __init__(
        self,
        store: TokenStore,
        order: RowOrder,
        settings: StepSettings,
        rank: int,
        pad_token_id: int,
        pad_to_multiple_of: int | None,
        max_tokens: int | None,
    ) -> None:
        self.max_tokens = max_tokens
        self.store, self.order, self.settings, self.rank = store, order, settings, rank
        self.padding = (pad_token_id, pad_to_multiple_of)
        self.lengths = order.lengths  # of the same store: not a second copy

    def __getitem__(self, step: int) -> Window:
        rows = self.order.window(step)
        mine = cut(rows, self.lengths, self.settings, self.rank, self.max_tokens)
        return Window(
            step=step,
            epoch=(step + 1) / self.order.steps_per_epoch,
            micro_batches=[collate(self.store, part, *self.padding) for part in mine],
            num_targets=int(self.store.num_targets[rows].sum()),
            num_rows=len(rows),
            num_tokens=int(self.lengths[rows].sum()),
        )


def windows(
    store: TokenStore,
    order: RowOrder,
    settings: StepSettings,
    rank: int,
    start_step: int,
    num_steps: int,
    pad_token_id: int,
    num_workers: int = 0,
    pin_memory: bool = False,
    pad_to_multiple_of: int | None = None,
    max_tokens: int | None = None,
) -> Iterator[Window]:
    """The steps `start_step` to `start_step + num_steps - 1`, collated ahead by `num_workers` processes.

    `max_tokens`: a token budget of one micro batch, see `cut`. Padding takes about 0.1 ms a step, less than
    a worker's hand-over: workers pay only where it is much more.
    Nothing is drawn from the global generator. Closing the iterator early ends its processes.
    """
    steps = range(start_step, start_step + num_steps)
    dataset = _Windows(store, order, settings, rank, pad_token_id, pad_to_multiple_of, max_tokens)
    if num_workers:
        yield from _ahead(dataset, steps, num_workers, pin_memory)
        return
    for step in steps:
        window = dataset[step]
        yield window.pin_memory() if pin_memory else window


def _ahead(dataset: _Windows, steps: range, num_workers: int, pin_memory: bool) -> Iterator[Window]:
    loader: DataLoader[Window] = DataLoader(
        dataset,
        batch_size=None,
        sampler=steps,
        num_workers=num_workers,
        collate_fn=_as_it_is,
        pin_memory=pin_memory,
        # Without its own generator every new iterator draws from the global one and shifts dropout.
        generator=torch.Generator(),
        multiprocessing_context="fork",
        worker_init_fn=workers_torch.begin_as_worker,
        # A worker that neither works nor dies (a lock held across the fork, a mount that is gone).
        timeout=workers_torch.TIMEOUT_S,
    )
    with workers_torch.killed_at_the_end():
        with _quiet_fork():
            iterator = iter(loader)
        try:
            yield from workers_torch.handed_over(iterator)
        finally:
            del iterator


def _as_it_is(window: Any) -> Any:
    return window


@contextmanager
def _quiet_fork() -> Iterator[None]:
    """Workers only pad: no warning is due that the threads of a tokenizer do not survive a fork."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ.setdefault(name, "true")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
            yield
    finally:
        if before is None:
            del os.environ[name]


def eval_batches(
    store: TokenStore,
    batch_size: int,
    rank: int,
    num_ranks: int,
    pad_token_id: int,
    pad_to_multiple_of: int | None = None,
    pin_memory: bool = False,
) -> Iterator[tuple[Int64, Batch]]:
    """(row ids, batch) of this rank, longest rows first; over all ranks each row exactly once.

    Every rank gets the same number of batches. One without rows has no row ids and a row of padding.
    """
    every = np.arange(len(store), dtype=np.int64)
    for rows in spread(every, store.lengths, batch_size, rank, num_ranks):
        batch = collate(store, rows, pad_token_id, pad_to_multiple_of)
        if pin_memory:
            batch = {name: tensor.pin_memory() for name, tensor in batch.items()}
        yield rows, batch

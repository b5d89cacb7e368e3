"""Runs a failed step's forward pass once more under hooks, to name the module where numbers break.

Skipped steps leave the weights alone, so the same rows, the same dropout and the same weights give the same
forward pass. Nothing is updated; the run ends afterwards. Every rank must call: divided weights are gathered.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from launcher.data.batches_torch import Window, windows
from launcher.data.order import cut
from launcher.data.ragged import Int64
from launcher.step.module import seed_micro_batch
from launcher.train.job import Job

# The name of the outermost module, whose output is the loss.
LOSS = "the loss"
# Modules with the largest finite outputs that are kept where every output is finite.
LARGEST = 5


@dataclass(frozen=True, kw_only=True)
class Output:
    """A module's output in one forward pass, `order` counting from 0 as modules finish.

    `largest` is the largest finite |value|, `largest_in_fp32` what it would be if this one module computed in
    fp32 (None where that is not known), `bad_rows` the places in the micro batch (its first dimension) that
    hold a value which is not finite; `input_largest` and `input_is_finite` are of what went in.
    """

    order: int
    module: str
    kind: str
    dtype: str
    is_finite: bool
    largest: float
    largest_in_fp32: float | None
    bad_rows: tuple[int, ...]
    input_is_finite: bool
    input_largest: float


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What one rank saw: the first module with values that are not finite, or the largest outputs.

    `micro_batch` counts from 0; `rows` are the training rows of that micro batch, `bad_rows` those of them
    with a bad output. `loss_is_finite` is of this rank's whole part of the window.
    """

    rank: int
    loss_is_finite: bool
    first: Output | None
    micro_batch: int | None
    rows: tuple[int, ...]
    bad_rows: tuple[int, ...]
    largest: tuple[Output, ...]
    failed: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain types."""
        return asdict(self)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every floating point tensor in a module's arguments or results."""
    if isinstance(value, Tensor):
        if value.is_floating_point() and value.numel():
            yield value.detach()
    elif isinstance(value, dict):
        yield from (tensor for each in value.values() for tensor in tensors_in(each))
    elif isinstance(value, list | tuple):
        yield from (tensor for each in value for tensor in tensors_in(each))


def _largest(tensors: Sequence[Tensor]) -> float:
    """The largest finite |value|, in fp32 so that a half type's own range does not matter."""
    found = [torch.where(torch.isfinite(t), t, 0).abs().max().float() for t in tensors]
    return float(torch.stack([each.to(found[0].device) for each in found]).max()) if found else 0.0


def _in_fp32(module: nn.Module, inputs: Sequence[Tensor]) -> float | None:
    """The largest |value| of a plain linear layer's output in fp32: how far beyond a half type's end."""
    weight = getattr(module, "weight", None)
    if not isinstance(module, nn.Linear) or not isinstance(weight, Tensor) or not weight.is_floating_point():
        return None
    if not inputs or weight.dim() != 2 or inputs[0].shape[-1] != weight.shape[1]:
        return None
    bias = None if module.bias is None else module.bias.float()
    with torch.autocast(inputs[0].device.type, enabled=False):
        return _largest([nn.functional.linear(inputs[0].float(), weight.float(), bias)])


def _are_finite(tensors: Sequence[Tensor]) -> bool:
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def _bad_rows(tensors: Sequence[Tensor], num_rows: int) -> tuple[int, ...]:
    """Places along the first dimension, where that is the micro batch's."""
    found: set[int] = set()
    for tensor in tensors:
        if tensor.dim() and tensor.shape[0] == num_rows:
            bad = ~torch.isfinite(tensor).reshape(num_rows, -1).all(1)
            found |= set(bad.nonzero().flatten().tolist())
    return tuple(sorted(found))


class Watch:
    """Hooks on every module of one forward pass."""

    def __init__(self, root: nn.Module) -> None:
        """Watch the modules below `root`; `root` itself, whose output is the loss, is the last to finish."""
        self.root = root
        self.num_rows = 0
        self.outputs: list[Output] = []
        self.first: Output | None = None

    @contextmanager
    def attached(self, num_rows: int) -> Iterator[None]:
        """Look at one forward pass of a micro batch with so many rows."""
        self.num_rows, self.outputs, self.first = num_rows, [], None
        handles = [
            # Before a backend's own hooks, which let gathered weights go.
            module.register_forward_hook(self._hook(name), with_kwargs=True, prepend=True)
            for name, module in self.root.named_modules()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, name: str) -> Any:
        def look(module: nn.Module, args: Any, kwargs: Any, result: Any) -> None:
            found = self._output(
                name, module, [*tensors_in(args), *tensors_in(kwargs)], [*tensors_in(result)]
            )
            if found is None:
                return
            self.outputs.append(found)
            if self.first is None and not found.is_finite:
                self.first = found

        return look

    def _output(
        self, name: str, module: nn.Module, inputs: Sequence[Tensor], results: Sequence[Tensor]
    ) -> Output | None:
        if not results or self.first is not None:
            return None
        is_finite = _are_finite(results)
        return Output(
            order=len(self.outputs),
            module=name or LOSS,
            kind=_kind(module),
            dtype=str(results[0].dtype).removeprefix("torch."),
            is_finite=is_finite,
            largest=_largest(results),
            largest_in_fp32=None if is_finite else _in_fp32(module, inputs),
            bad_rows=() if is_finite else _bad_rows(results, self.num_rows),
            input_is_finite=_are_finite(inputs),
            input_largest=_largest(inputs),
        )


def _kind(module: nn.Module) -> str:
    """The class as its author named it: FSDP2 puts its own name in front."""
    return type(module).__name__.removeprefix("FSDP")


def inspect(job: Job, step: int) -> Findings:
    """Repeat the forward pass of a global step (from 0). Every rank must call; nothing is updated."""
    window, rows = window_of(job, step), micro_rows(job, step)
    watch = Watch(job.module)
    found = Findings(
        rank=job.world.rank,
        loss_is_finite=True,
        first=None,
        micro_batch=None,
        rows=(),
        bad_rows=(),
        largest=(),
    )
    for index, batch in enumerate(window.micro_batches):
        loss_is_finite = _forward(job, window, index, batch, watch)
        found = replace(found, loss_is_finite=found.loss_is_finite and loss_is_finite)
        if watch.first is not None and found.first is None:
            found = _named(found, watch.first, index, [int(row) for row in rows[index]])
        every = sorted((*found.largest, *watch.outputs), key=lambda each: -each.largest)
        found = replace(found, largest=_best(every))
    return found


def _best(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """The largest of each module, the first few of them."""
    seen: dict[str, Output] = {}
    for each in outputs:
        seen.setdefault(each.module, each)
    return tuple(seen.values())[:LARGEST]


def _named(found: Findings, first: Output, index: int, rows: list[int]) -> Findings:
    bad = tuple(rows[place] for place in first.bad_rows if place < len(rows))
    return replace(found, first=first, micro_batch=index, rows=tuple(rows), bad_rows=bad)


def _forward(job: Job, window: Window, index: int, batch: dict[str, Tensor], watch: Watch) -> bool:
    """One micro batch as in training, without gradients; whether its part of the loss is finite."""
    device = job.strategy.parts.device
    seed_micro_batch(job.recipe.training.seed, window.step, index, job.world.rank)
    on_device = {key: tensor.to(device) for key, tensor in batch.items()}
    with torch.no_grad(), watch.attached(len(batch["input_ids"])):
        loss, _ = job.strategy.module(**on_device)
        return bool(torch.isfinite(loss / max(1, window.num_targets)))


def window_of(job: Job, step: int) -> Window:
    """The micro batches of a global step (from 0) on this rank, as the loop got them."""
    data = job.recipe.data
    return next(
        iter(
            windows(
                job.store,
                job.order,
                job.plan.step,
                job.world.rank,
                step,
                1,
                job.tokenizer.pad_token_id,
                pad_to_multiple_of=data.pad_to_multiple_of,
                max_tokens=data.micro_batch_tokens,
            )
        )
    )


def micro_rows(job: Job, step: int, rank: int | None = None) -> list[Int64]:
    """Rows of each micro batch of a global step (from 0) on a rank, this one where None."""
    rows = job.order.window(step)
    mine = job.world.rank if rank is None else rank
    return cut(rows, job.order.lengths, job.plan.step, mine, job.recipe.data.micro_batch_tokens)


def bad_parameters(job: Job) -> list[str]:
    """Names of parameters with values that are not finite, on any rank. Every rank must call."""
    mine = [
        name
        for name, tensor in job.strategy.local_tensors()
        if tensor.is_floating_point() and tensor.numel() and not bool(torch.isfinite(tensor).all())
    ]
    return sorted({name for part in job.world.gather(mine) for name in part})

"""Connects ZeRO-Infinity: ZeRO-3 whose parameters and optimizer states lie in files (deepspeed 0.19.8).

DeepSpeed keeps tensors below 1 MiB in RAM: opening a file for them costs more than it saves. It takes
buffers for parameters of 1e8 elements where told nothing, 2 GB a rank: here they fit the largest one.
"""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from launcher.backends.disk import (
    BLOCKS,
    OwnFolder,
    folders,
    is_on_disk,
    require_lockable,
    require_space,
    take_folder,
)
from launcher.backends.strategy_torch import MOMENTS, Parts, Strategy, mismatch
from launcher.backends.zero3_torch import Zero3Strategy
from launcher.errors import BadValue, Problem
from launcher.units import format_bytes

_ALIGNMENT = 1024
_FP32 = 4


class Zero3NvmeStrategy(Zero3Strategy):
    """Zero3Strategy in folders of its own below every `nvme_path`, which `close` removes."""

    def __init__(self, parts: Parts) -> None:
        """Take the folders, after asserting that the disk and this process's limits are large enough."""
        self.disks: list[OwnFolder] = []
        _require_room(parts)
        # no rank writes before every rank has looked
        dist.barrier()
        try:
            super().__init__(replace(parts, config=self._placed(parts)))
        except BaseException:
            self.close()
            raise
        _tame_prefetch(parts)

    def _placed(self, parts: Parts) -> dict[str, Any]:
        """The JSON with this rank's folders, and with buffers for its largest parameter."""
        config = copy.deepcopy(parts.config)
        taken = {place: take_folder(place, parts.rank) for place in folders(config)}
        self.disks = list(taken.values())
        for name, block in _blocks(config).items():
            block["nvme_path"] = str(taken[Path(block["nvme_path"]).expanduser().absolute()].path)
            if name == "offload_param":
                _fit_buffers(block, _largest_piece(parts))
                block.setdefault("buffer_count", _buffer_count(parts))
        # a weight that stays for its next use holds a buffer meanwhile: 1e9 elements of them take them all
        config["zero_optimization"]["stage3_max_reuse_distance"] = 0
        return config

    def close(self) -> None:
        """Remove this rank's files."""
        for disk in self.disks:
            disk.remove()

    def _check_offload(self) -> None:
        """Both swappers exist where the configuration asks for them."""
        asked = set(_blocks(self.parts.config))
        found = {"offload_optimizer"} if self.zero.swap_optimizer else set()
        found |= {"offload_param"} if self.zero.params_in_nvme_and_cpu else set()
        if asked != found:
            raise mismatch(f"on disk: {sorted(found)}", f"on disk: {sorted(asked)}")

    def notes(self) -> list[str]:
        """What lies on the disk, and what stays in RAM."""
        swappable = [index for index in self._groups() if self.zero._swappable_optimizer_subgroup(index)]
        sizes = [path.stat().st_size for disk in self.disks for path in disk.path.rglob("*.swp")]
        return [
            *super().notes(),
            f"on disk: {len(swappable)} of {len(self._groups())} optimizer groups, {len(sizes)} files of "
            f"{format_bytes(sum(sizes))} on rank 0; DeepSpeed keeps what is below 1 MiB in RAM",
        ]

    def local_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The pieces, read from the disk one by one where they lie there."""
        named: Iterator[tuple[str, Any]] = self.parts.module.named_parameters()
        for name, parameter in named:
            with _in_memory(parameter):
                yield name, parameter.ds_tensor.detach().clone()

    def _groups(self) -> range:
        return range(len(self.zero.fp16_groups))

    def _take_over(self, group: int) -> None:
        is_swapped = self.zero._swappable_optimizer_subgroup(group)
        if is_swapped:
            self.zero._optimizer_states_and_gradient_swap_in(group)
        super()._take_over(group)
        if is_swapped:
            self.zero._optimizer_states_and_gradient_swap_out(group)

    def _make_moments(self, num_updates: int) -> None:
        """As elsewhere; a group that lies on disk is brought in for it, and written with its moments."""
        self.has_moments = True
        for index, flat in enumerate(self._partitions()):
            is_swapped = self.zero._swappable_optimizer_subgroup(index)
            if is_swapped:
                self.zero._optimizer_states_and_gradient_swap_in(index)
            if not self.optimizer.state.get(flat):
                self.optimizer.state[flat] = {key: torch.zeros_like(flat) for key in MOMENTS}
            self.optimizer.state[flat]["step"] = self._step_count(num_updates, flat)
            if is_swapped:
                self.zero._optimizer_states_and_gradient_swap_out(index)


def _tame_prefetch(parts: Parts) -> None:
    """Let the swapper pass over a repeated parameter, and leave buffers for what was not foreseen.

    deepspeed 0.19.8 prefetches along its trace, where the last modules of the forward pass are the first
    of the backward pass. Without this a frozen weight there fails with "already assigned swap buffer", or
    the next one finds every buffer taken by weights that are needed later.
    """
    reserve = _most_at_once(parts.module)
    parameters: Iterator[Any] = parts.module.parameters()
    for swapper in {each.nvme_swapper for each in parameters} - {None}:
        swapper.swap_in = _tamed(swapper, swapper.swap_in, reserve)


def _tamed(swapper: Any, swap_in: Callable[..., None], reserve: int) -> Callable[..., None]:
    def tamed(params: list[Any], async_op: bool = True, swap_in_buffers: list[Any] | None = None) -> None:
        if swap_in_buffers is not None:
            swap_in(params, async_op=async_op, swap_in_buffers=swap_in_buffers)
            return
        wanted = list({param.ds_id: param for param in params}.values())
        if async_op:  # foreseen, not yet needed
            wanted = wanted[: max(0, swapper.available_swap_in_buffers() - reserve)]
        if wanted:
            swap_in(wanted, async_op=async_op)

    return tamed


def _most_at_once(module: nn.Module) -> int:
    """The most parameters that one module computes with, its own and borrowed ones."""
    return max(
        len([*each.parameters(recurse=False)]) + len([*getattr(each, "borrowed_parameters", tuple)()])
        for each in module.modules()
    )


@contextmanager
def _in_memory(parameter: Any) -> Iterator[None]:
    """This rank's piece of a parameter, read from the disk and released again if it was there only."""
    from deepspeed.runtime.swap_tensor.partitioned_param_swapper import PartitionedParamStatus

    swapper = parameter.nvme_swapper
    if parameter.ds_tensor.status == PartitionedParamStatus.INFLIGHT:
        swapper.synchronize_reads()
    is_away = parameter.ds_tensor.status == PartitionedParamStatus.NOT_AVAILABLE
    if is_away:
        swapper.swap_in([parameter], async_op=False)
    try:
        yield
    finally:
        if is_away:
            swapper.remove_partition_and_release_buffers([parameter])


def _blocks(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    zero = config["zero_optimization"]
    return {name: zero[name] for name in BLOCKS if name in zero and is_on_disk(zero[name])}


def _fit_buffers(block: dict[str, Any], needed: int) -> None:
    """Buffers for a parameter's piece. Raises BadValue where a file's own are smaller."""
    if block.setdefault("buffer_size", needed) < needed:
        raise BadValue(
            Problem(
                where="zero_optimization.offload_param.buffer_size",
                what=f"{block['buffer_size']} elements, the largest parameter has {needed} a rank",
                right="as many as the largest, which is what is taken without the key",
                type=f'"buffer_size": {needed}, or remove the key',
            )
        )


def _buffer_count(parts: Parts) -> int:
    """DeepSpeed's own five, or three ahead beside what one module needs now and what is kept free for it."""
    return max(5, 2 * _most_at_once(parts.module) + 3)


def _largest_piece(parts: Parts) -> int:
    """Elements of the largest parameter that one rank holds, as the disk's blocks align them."""
    largest = max(parameter.numel() for parameter in parts.module.parameters())
    piece = -(-largest // parts.settings.num_ranks)
    return -(-piece // _ALIGNMENT) * _ALIGNMENT


def _require_room(parts: Parts) -> None:
    """The files of all ranks of this machine against each disk; this rank's buffers against its limit."""
    parameters = list(parts.module.parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", parts.settings.num_ranks)) / parts.settings.num_ranks
    # fp32 weights, two moments and gradients of what is trained, and every weight as it computes
    needed = 4 * _FP32 * trained + sum(each.numel() * each.element_size() for each in parameters)
    for place in folders(parts.config):
        require_space(place, round(needed * local))
    blocks = _blocks(parts.config)
    sub_group = parts.config["zero_optimization"].get("sub_group_size", 10**9)
    group = min(-(-trained // parts.settings.num_ranks), sub_group)
    elements = {"offload_param": _largest_piece(parts), "offload_optimizer": group}
    counts = {"offload_param": _buffer_count(parts), "offload_optimizer": 4}
    locked = {
        name: block.get("buffer_count", counts[name]) * elements[name] for name, block in blocks.items()
    }
    require_lockable(_FP32 * sum(locked.values()))


def connect(parts: Parts) -> Strategy:
    """The strategy for ZeRO-Infinity; the process group must exist."""
    return Zero3NvmeStrategy(parts)

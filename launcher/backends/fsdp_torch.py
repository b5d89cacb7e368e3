"""Connects FSDP2 by calling `fully_shard` directly: parameters, gradients and states divided.

The same code on CPU (gloo) and GPU: Accelerate's own branch falls back to DDP on a CPU in silence
(accelerate 1.15). The optimizer works on each rank's plain pieces, which share memory with the
sharded parameters: AdamW is element-wise, so the result is the same, without a dispatch per tensor.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from launcher.backends.fsdp import Fsdp2OffloadOptions, FsdpOptions
from launcher.backends.plain_torch import PlainStrategy
from launcher.backends.strategy_torch import (
    MOMENTS,
    ParameterState,
    Parts,
    Strategy,
    mismatch,
    remember_rates,
)
from launcher.models.blocks_torch import block_modules


class ShardedStrategy(PlainStrategy):
    """FSDP2 averages over ranks, so the loss is multiplied by their number.

    A window that failed on one rank is not run again: the others wait for it in the middle of a block.
    """

    recovers = False

    def __init__(self, parts: Parts) -> None:
        """Shard block by block, then the rest, then build the optimizer over the pieces."""
        Strategy.__init__(self, parts)
        self.mesh = init_device_mesh(parts.device.type, (dist.get_world_size(),))
        self.offload = isinstance(parts.options, Fsdp2OffloadOptions)
        self.module = shard(parts.module.to(parts.device), self.mesh, parts, offload=self.offload)
        self.pieces = self._make_pieces()
        groups = [group | {"params": [self.pieces[p] for p in group["params"]]} for group in self._groups()]
        for group in parts.groups:
            group["params"] = []  # else the whole parameters stay in memory beside their pieces
        self.optimizer = remember_rates(parts.make_optimizer(groups))
        self.gradient_factor = parts.settings.num_ranks
        self._fused = bool(self.optimizer.defaults.get("fused"))

    def _groups(self) -> list[dict[str, Any]]:
        """The groups over today's parameters: sharding has put new ones in the old ones' places."""
        decays = {name: group for group in self.parts.groups for name in group["names"]}
        found: dict[int, dict[str, Any]] = {}
        for name, parameter in self.named_trainable():
            group = decays[name]
            kept = {key: value for key, value in group.items() if key not in ("params", "names")}
            found.setdefault(id(group), kept | {"params": []})["params"].append(parameter)
        return [*found.values()]

    def _make_pieces(self) -> dict[nn.Parameter, nn.Parameter]:
        return {parameter: nn.Parameter(_local(parameter)) for _, parameter in self.named_trainable()}

    def _settle(self) -> None:
        """Put the pieces back into the modules: a forward pass leaves the root's weights gathered."""
        for module in self.module.modules():
            if isinstance(module, FSDPModule):
                module.reshard()

    def _gradients(self) -> list[Tensor]:
        """Each piece's gradient, handed over from the sharded parameter."""
        found = []
        for parameter, piece in self.pieces.items():
            piece.grad = None if parameter.grad is None else _local(parameter.grad)
            parameter.grad = None
            if piece.grad is not None:
                found.append(piece.grad)
        return found

    def _total_norm(self, gradients: list[Tensor]) -> Tensor:
        """The norm over all ranks' pieces."""
        own = torch.nn.utils.get_total_norm(gradients) if gradients else torch.zeros(())
        squared = own.to(self.parts.device, torch.float32) ** 2
        dist.all_reduce(squared)
        return squared.sqrt()

    def check(self) -> str:
        """Blocks and root are FSDP modules, parameters are divided, over the planned ranks."""
        blocks = [module for module in self.module.modules() if isinstance(module, FSDPModule)]
        ranks = dist.get_world_size()
        divided = all(isinstance(parameter, DTensor) for parameter in self.module.parameters())
        if ranks != self.parts.settings.num_ranks or len(blocks) < 2 or not divided:
            raise mismatch(f"{len(blocks)} FSDP modules over {ranks} ranks", "every block sharded by FSDP2")
        return (
            f"{self.parts.name}: {len(blocks)} FSDP2 modules over {ranks} ranks on {self.parts.device.type}"
        )

    def state(self) -> Iterator[tuple[str, ParameterState]]:
        """Gathered parameter by parameter."""
        self._settle()
        for name, parameter in self.named_trainable():
            piece = self.pieces[parameter]
            held = self.optimizer.state.get(piece, {})
            found = {"weight": self._whole(piece.detach(), parameter)}
            yield name, found | {k: self._whole(held[k], parameter) for k in MOMENTS if k in held}

    def load_state(self, read: Callable[[str], ParameterState], *, num_updates: int) -> None:
        """Each rank keeps its piece of every tensor."""
        self._settle()
        own = self._own_updates(num_updates)
        for name, parameter in self.named_trainable():
            piece = self.pieces[parameter]
            if not (whole := read(name)):
                continue
            found = {key: _piece_of(tensor, parameter, self.mesh) for key, tensor in whole.items()}
            with torch.no_grad():
                piece.copy_(found["weight"])
            if own[piece]:
                self.optimizer.state[piece] = self._moments(piece, found, own[piece])

    def whole_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Gathered parameter by parameter, copied off the device."""
        self._settle()
        for name, parameter in self.parts.module.named_parameters():
            yield name, self._whole(_local(parameter), parameter).to("cpu", copy=True)

    def _whole(self, piece: Tensor, like: Tensor) -> Tensor:
        """The full tensor, on the device, of pieces laid out as `like` is."""
        assert isinstance(like, DTensor)
        spread = DTensor.from_local(
            piece.to(self.parts.device),
            self.mesh,
            like.placements,
            run_check=False,
            shape=like.shape,
            stride=like.stride(),
        )
        return spread.full_tensor()

    def local_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The pieces."""
        self._settle()
        for name, parameter in self.parts.module.named_parameters():
            yield name, _local(parameter)


def shard(module: nn.Module, mesh: DeviceMesh, parts: Parts, *, offload: bool) -> nn.Module:
    """`fully_shard` on every block, adapters of a block as a unit of their own, then on the root.

    Parameters of one unit must share a type: adapters are fp32 over a half-precision base.
    """
    options = parts.options
    assert isinstance(options, FsdpOptions)
    pinned = parts.device.type == "cuda"
    policy = CPUOffloadPolicy(pin_memory=pinned) if offload else OffloadPolicy()
    for unit in [*_blocks(module, options.wrap_classes), module]:
        again = options.reshard_after_forward if unit is not module else None
        if adapters := _leaves_of_other_type(unit):
            fully_shard(adapters, mesh=mesh, reshard_after_forward=again, offload_policy=policy)
        fully_shard(unit, mesh=mesh, reshard_after_forward=again, offload_policy=policy)
    return module


def _blocks(module: nn.Module, wrap_classes: tuple[str, ...]) -> list[nn.Module]:
    """The blocks, without those that hold a parameter which is used outside them: the root keeps it."""
    borrowed = {id(parameter) for parameter in getattr(module, "borrowed_parameters", list)()}
    blocks = block_modules(module, wrap_classes)
    return [each for each in blocks if not borrowed & {id(parameter) for parameter in each.parameters()}]


def _leaves_of_other_type(module: nn.Module) -> list[nn.Module]:
    """Modules not yet sharded whose own parameters have another type than most of the unit's."""
    free = [
        (each, parameter)
        for each in module.modules()
        for parameter in each.parameters(recurse=False)
        if not isinstance(parameter, DTensor)
    ]
    sizes: dict[torch.dtype, int] = {}
    for _, parameter in free:
        sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter.numel()
    if len(sizes) < 2:
        return []
    main = max(sizes, key=lambda dtype: sizes[dtype])
    return list(dict.fromkeys(each for each, parameter in free if parameter.dtype is not main))


def _local(tensor: Tensor) -> Tensor:
    """This rank's plain piece, in the same memory; without DTensor's dispatch, which costs every step."""
    with torch.no_grad():
        local: Any = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    piece: Tensor = local.detach()
    return piece


def _piece_of(full: Tensor, like: Tensor, mesh: DeviceMesh) -> Tensor:
    """This rank's piece of a full tensor, without a broadcast: every rank has read it."""
    assert isinstance(like, DTensor)
    spread: Any = distribute_tensor(full.to(mesh.device_type), mesh, like.placements, src_data_rank=None)
    piece: Tensor = spread.to_local()
    return piece


def connect(parts: Parts) -> Strategy:
    """The strategy for FSDP2; the process group must exist."""
    return ShardedStrategy(parts)

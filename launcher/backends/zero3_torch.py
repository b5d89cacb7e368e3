"""Connects DeepSpeed ZeRO-3: parameters divided too, gathered module by module (deepspeed 0.19.8)."""

from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn

from launcher.backends.strategy_torch import MOMENTS, ParameterState, Parts, Strategy
from launcher.backends.zero_torch import (
    ZeroStrategy,
    engine_config,
    import_deepspeed,
    offload_device,
)


class Zero3Strategy(ZeroStrategy):
    """A DeepSpeedEngine whose parameters are placeholders outside the module that uses them."""

    def __init__(self, parts: Parts) -> None:
        """Build the engine, then tell it which parameters are used outside their own module."""
        if offload_device(parts.config, "offload_param") != "nvme":
            divide(parts)
        super().__init__(parts)
        deepspeed = import_deepspeed(parts.device.type)
        for module in parts.module.modules():
            for parameter in getattr(module, "borrowed_parameters", tuple)():
                deepspeed.zero.register_external_parameter(module, parameter)

    def _partitions(self) -> list[Tensor]:
        return [*self.zero.fp32_partitioned_groups_flat]

    def state(self) -> Iterator[tuple[str, ParameterState]]:
        """Gathered parameter by parameter."""
        keys = MOMENTS if self.has_moments else ()
        for name, parameter in self.named_trainable():
            found = {"weight": self.zero.get_full_hp_param(parameter)}
            yield name, found | {key: self.zero.get_full_hp_param(parameter, key) for key in keys}

    def _group_of(self, index: int) -> dict[str, Any]:
        """The parameter group that a sub-group is of."""
        group: dict[str, Any] = self.optimizer.param_groups[self.zero.sub_group_to_group_id[index]]
        return group

    def load_state(self, read: Callable[[str], ParameterState], *, num_updates: int) -> None:
        """Fill this rank's pieces, then the placeholders' pieces from them.

        What a forward pass has left gathered is released first, or the old weights would stay in use: the
        engine keeps small parameters, and after an evaluation all that it expects to need again.
        """
        self.zero.empty_partition_cache()
        if num_updates:
            self._make_moments(num_updates)
        for name, parameter in self.named_trainable():
            for key, tensor in read(name).items():
                if key == "weight" or num_updates:
                    self._fill(parameter, None if key == "weight" else key, tensor)
        for group in range(len(self.zero.fp16_groups)):
            self._take_over(group)
        if small := self.zero.persistent_parameters:
            small[0].all_gather(small)

    def _take_over(self, group: int) -> None:
        """The placeholders' pieces from the trained ones, as after a step."""
        self.zero._reassign_or_swap_out_partitioned_parameters(group)

    def _fill(self, parameter: nn.Parameter, key: str | None, full: Tensor) -> None:
        """DeepSpeed's own setter fails where the ranks do not divide the parameter: pad as it does."""
        piece, group = self.zero._get_fp32_opt_state_partition(
            parameter, release_swap_buffers=False, optim_state_key=key
        )
        start = piece.numel() * self.parts.rank
        mine = full.flatten()[start : start + piece.numel()].to(piece.device, piece.dtype)
        piece.data.zero_()
        piece.data[: mine.numel()].copy_(mine)
        if self.zero._swappable_optimizer_subgroup(group):
            self.zero._optimizer_states_and_gradient_swap_out(group)

    def _tie_moments(self) -> None:
        """Nothing to tie: pieces are looked up in the optimizer's state."""

    def whole_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Gathered parameter by parameter, copied off the device.

        An evaluation leaves weights on their way that a backward pass would need next: they are waited for
        and let go first, as before DeepSpeed's own checkpoints, or it refuses to divide them again.
        """
        deepspeed = import_deepspeed(self.parts.device.type)
        self.zero.checkpoint_event_prologue()
        for name, parameter in self.parts.module.named_parameters():
            with deepspeed.zero.GatheredParameters([parameter]):
                yield name, parameter.detach().to("cpu", copy=True)

    def local_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The pieces behind the placeholders."""
        named: Iterator[tuple[str, Any]] = self.parts.module.named_parameters()
        yield from ((name, parameter.ds_tensor.detach()) for name, parameter in named)


def divide(parts: Parts) -> None:
    """Bring one parameter after another to the device, and keep this rank's piece of it.

    Left to itself the engine moves the whole model there before it divides it: a model that only fits
    divided would never start.
    """
    deepspeed = import_deepspeed(parts.device.type)
    deepspeed.init_distributed(verbose=False, dist_init_required=False)
    first = next(parts.module.parameters())
    config = engine_config(parts.config)
    deepspeed.zero.Init(module=parts.module, config_dict_or_path=config, dtype=first.dtype)


def connect(parts: Parts) -> Strategy:
    """The strategy for ZeRO-3; the process group must exist."""
    return Zero3Strategy(parts)

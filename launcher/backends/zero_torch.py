"""Connects DeepSpeed ZeRO-1/2 by calling its engine directly (tried with deepspeed 0.19.8).

The engine runs in fp32 mode whatever the precision: autocast and the loss scale are ours, so that
the numbers are those of the other backends, and fp16 works on CPU too. The engine still decides
about the step: it finds non-finite gradients itself and leaves the weights alone.
"""

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from launcher.backends.cpu_adam_torch import counts_in_python, offloaded
from launcher.backends.strategy_torch import (
    MOMENTS,
    ParameterState,
    Parts,
    StepOutcome,
    Strategy,
    mismatch,
    poisoned_if_not_finite,
    remember_rates,
    updates_of,
)

OURS = ("bf16", "fp16", "torch_autocast", "optimizer", "scheduler")


def import_deepspeed(device_type: str) -> Any:
    """The deepspeed module, set up for this device, its start-up messages off.

    On CPU its shared-memory collective is left out: it would be compiled at first use (half a
    minute, a compiler, and a lock that hangs later runs if that is interrupted); gloo does the same.
    """
    if device_type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    import deepspeed

    deepspeed.utils.logger.setLevel(logging.WARNING)
    # deepspeed 0.19 calls collectives by names that torch 2.13 deprecates, several times a step
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.distributed")
    if device_type == "cpu":
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    return deepspeed


class ZeroStrategy(Strategy):
    """A DeepSpeedEngine. It averages over ranks, so the loss is multiplied by their number."""

    def __init__(self, parts: Parts) -> None:
        """Build the engine over the parts; `parts.config` is the resolved DeepSpeed JSON."""
        super().__init__(parts)
        deepspeed = import_deepspeed(parts.device.type)
        inner, self.optimizer_line = self._optimizer(parts)
        self.module, self.zero, _, _ = deepspeed.initialize(
            model=parts.module.to(parts.device),
            optimizer=inner,
            config=engine_config(parts.config),
            dist_init_required=False,
        )
        self.optimizer = inner
        self.has_moments = False
        self._apply_loss_scale()

    def _optimizer(self, parts: Parts) -> tuple[Optimizer, str]:
        """The recipe's optimizer, or the one that takes its place in host RAM; and what to say of it."""
        inner = remember_rates(parts.make_optimizer(parts.groups))
        if offload_device(parts.config) == "none":
            return inner, ""
        return offloaded(inner, getattr(parts.options, "cpu_adam", "auto"))

    def _apply_loss_scale(self) -> None:
        if self.loss_scale.is_live:
            self.zero.custom_loss_scaler = True
            self.zero.external_loss_scale = float(self.loss_scale.scale)

    def restore_loss_scale(self, state: dict[str, float]) -> None:
        """The engine multiplies by a copy of its own."""
        super().restore_loss_scale(state)
        self._apply_loss_scale()

    @contextmanager
    def accumulating(self, *, is_last: bool) -> Iterator[None]:
        """Tell the engine whether this micro batch ends the window."""
        self.module.set_gradient_accumulation_boundary(is_last)  # type: ignore[operator]
        yield
        if not is_last:
            self.module.step()  # type: ignore[operator]

    def backward(self, loss: Tensor) -> None:
        """Accumulate; the engine multiplies by the loss scale."""
        share = poisoned_if_not_finite(loss) * self.parts.settings.num_ranks
        self.module.backward(share, scale_wrt_gas=False)  # type: ignore[operator]

    def step(self) -> StepOutcome:
        """Let the engine clip and update, or skip; report what it did."""
        self.module.step()  # type: ignore[operator]
        self.has_moments |= not self.zero.overflow
        skipped = torch.tensor(float(self.zero.overflow), device=self.parts.device)
        norm = torch.as_tensor(self.zero._global_grad_norm, device=self.parts.device).float()
        self.loss_scale.update(skipped)
        self._apply_loss_scale()
        return StepOutcome(grad_norm=norm, skipped=skipped)

    def check(self) -> str:
        """The wrapper is DeepSpeed's engine, at the configured stage, over the planned ranks."""
        stage, ranks = self.module.zero_optimization_stage(), dist.get_world_size()  # type: ignore[operator]
        asked = self.parts.config["zero_optimization"]["stage"]
        if type(self.module).__name__ != "DeepSpeedEngine" or stage != asked:
            raise mismatch(
                f"{type(self.module).__name__} at stage {stage}", f"DeepSpeedEngine at stage {asked}"
            )
        if ranks != self.parts.settings.num_ranks:
            raise mismatch(f"{ranks} ranks in the group", f"{self.parts.settings.num_ranks} ranks")
        self._check_offload()
        line = f"{self.parts.name}: DeepSpeedEngine over {ranks} ranks on {self.parts.device.type}"
        return "\n".join([line, *self.notes()])

    def release(self) -> None:
        """Take the engine's hooks off the module and free its partitions."""
        self.module.destroy()  # type: ignore[operator]

    def notes(self) -> list[str]:
        """What else is worth a line at the start."""
        return [self.optimizer_line] if self.optimizer_line else []

    def _check_offload(self) -> None:
        """Optimizer states live where the configuration says."""
        asked = offload_device(self.parts.config)
        leaves = bool(
            getattr(self.zero, "cpu_offload", False) or getattr(self.zero, "offload_optimizer", False)
        )
        away = all(flat.device.type == "cpu" for flat in self._partitions())
        if (asked != "none") != leaves or (leaves and not away):
            raise mismatch(f"optimizer states offloaded: {leaves}", f"offload_optimizer.device {asked}")

    def state(self) -> Iterator[tuple[str, ParameterState]]:
        """Each parameter's shards, summed together parameter by parameter."""
        from deepspeed.utils import safe_get_full_fp32_param, safe_get_full_optimizer_state

        if self.has_moments:
            self._tie_moments()
        for name, parameter in self.named_trainable():
            found = {"weight": safe_get_full_fp32_param(parameter)}
            for key in MOMENTS if self.has_moments else ():
                found[key] = safe_get_full_optimizer_state(parameter, key)
            yield name, found

    def _partitions(self) -> list[Tensor]:
        return [*self.zero.single_partition_of_fp32_groups]

    def load_state(self, read: Callable[[str], ParameterState], *, num_updates: int) -> None:
        """Fill this rank's shards, then gather the weights from them as after a step."""
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        if num_updates:
            self._make_moments(num_updates)
        for name, parameter in self.named_trainable():
            for key, tensor in read(name).items():
                value = tensor.to(parameter.device, torch.float32)
                if key == "weight":
                    safe_set_full_fp32_param(parameter, value)
                elif num_updates:
                    safe_set_full_optimizer_state(parameter, value, key)
        self.zero.update_lp_params()

    def _make_moments(self, num_updates: int) -> None:
        self.has_moments = True
        for index, flat in enumerate(self._partitions()):
            moments = {key: torch.zeros_like(flat) for key in MOMENTS}
            step = self._step_count(updates_of(self._group_of(index), num_updates), flat)
            self.optimizer.state[flat] = {"step": step, **moments}
        self._tie_moments()

    def _group_of(self, index: int) -> dict[str, Any]:
        """The parameter group that a partition is of."""
        return self.optimizer.param_groups[index]

    def _step_count(self, num_updates: int, flat: Tensor) -> Tensor | int:
        """The number of updates as this optimizer keeps it."""
        if counts_in_python(self.optimizer):
            return num_updates
        fused = bool(self.optimizer.defaults.get("fused"))
        return torch.tensor(float(num_updates), device=flat.device if fused else torch.device("cpu"))

    def _tie_moments(self) -> None:
        """DeepSpeed ties moments to parameters after its first group's step, when the others have none."""
        self.zero._hp_optimizer_states_linked = False
        self.zero._lazy_init_hp_params_optimizer_state()


def offload_device(config: dict[str, Any], what: str = "offload_optimizer") -> str:
    """Where a JSON puts the optimizer's states, or the parameters: none, cpu or nvme."""
    block = config["zero_optimization"].get(what) or {}
    return str(block.get("device", "none"))


def engine_config(config: dict[str, Any]) -> dict[str, Any]:
    """The JSON without what is ours (precision, optimizer, schedule), and with untried optimizers allowed."""
    kept = {key: value for key, value in config.items() if key not in OURS}
    return kept | {"zero_allow_untested_optimizer": True, "steps_per_print": 2**62}


def connect(parts: Parts) -> Strategy:
    """The strategy for ZeRO; the process group must exist."""
    return ZeroStrategy(parts)

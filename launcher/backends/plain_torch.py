"""Steps of a torch optimizer on whole parameters: what one card and DDP share."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from launcher.backends.strategy_torch import (
    ParameterState,
    Parts,
    StepOutcome,
    Strategy,
    poisoned_if_not_finite,
    remember_rates,
    updates_of,
)


class PlainStrategy(Strategy):
    """Whole parameters, whole gradients, a torch optimizer. `gradient_factor` undoes an averaging."""

    gradient_factor = 1
    recovers = True

    def __init__(self, parts: Parts) -> None:
        """Move the module to its device, then build the optimizer over it."""
        super().__init__(parts)
        self.module: nn.Module = parts.module.to(parts.device)
        self.optimizer = remember_rates(parts.make_optimizer(parts.groups))
        self._fused = bool(self.optimizer.defaults.get("fused"))

    def backward(self, loss: Tensor) -> None:
        """Accumulate the scaled gradient."""
        scale = self.loss_scale.scale * self.gradient_factor
        (poisoned_if_not_finite(loss) * scale).backward()

    def abandon(self) -> None:
        """Without gradients nothing of the window is left."""
        self.optimizer.zero_grad(set_to_none=True)

    def _gradients(self) -> list[Tensor]:
        groups = self.optimizer.param_groups
        return [p.grad for group in groups for p in group["params"] if p.grad is not None]

    def step(self) -> StepOutcome:
        """Unscale and clip in one pass; the fused optimizer skips on the device, others on the host."""
        gradients = self._gradients()
        norm = self._total_norm(gradients) / self.loss_scale.scale
        skipped = (~torch.isfinite(norm)).float()
        self._scale_gradients(gradients, norm)
        if self._fused:
            # The attributes through which torch's GradScaler tells fused optimizers to skip.
            self.optimizer.found_inf = skipped  # type: ignore[attr-defined]
            self.optimizer.grad_scale = None  # type: ignore[attr-defined]
            self.optimizer.step()
        elif not bool(skipped):
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss_scale.update(skipped)
        return StepOutcome(grad_norm=norm, skipped=skipped)

    def _total_norm(self, gradients: list[Tensor]) -> Tensor:
        return torch.nn.utils.get_total_norm(gradients)

    def _scale_gradients(self, gradients: list[Tensor], norm: Tensor) -> None:
        limit = self.parts.max_grad_norm
        if not self.loss_scale.is_live and not limit:
            return
        factor = 1 / self.loss_scale.scale
        if limit:
            # The small addend is torch.nn.utils.clip_grad_norm_'s, so that both clip alike.
            factor = factor * torch.clamp(limit / (norm + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, factor)

    def state(self) -> Iterator[tuple[str, ParameterState]]:
        """Straight from the optimizer: its parameters are whole and fp32."""
        for name, parameter in self.named_trainable():
            held = self.optimizer.state.get(parameter, {})
            kept = {key: each for key, each in held.items() if isinstance(each, Tensor) and key != "step"}
            yield name, {"weight": parameter.detach()} | kept

    def load_state(self, read: Callable[[str], ParameterState], *, num_updates: int) -> None:
        """Copy weights in place; set the moments and their count."""
        own = self._own_updates(num_updates)
        for name, parameter in self.named_trainable():
            if not (found := read(name)):
                continue
            with torch.no_grad():
                parameter.copy_(found["weight"])
            if own[parameter]:
                self.optimizer.state[parameter] = self._moments(parameter, found, own[parameter])

    def _own_updates(self, num_updates: int) -> dict[Tensor, int]:
        """How many updates each parameter of the optimizer has had."""
        groups = self.optimizer.param_groups
        return {each: updates_of(group, num_updates) for group in groups for each in group["params"]}

    def _moments(self, parameter: Tensor, found: ParameterState, num_updates: int) -> dict[str, Any]:
        held = {key: tensor for key, tensor in found.items() if key != "weight"}
        moments = {key: each.to(parameter.device, parameter.dtype).clone() for key, each in held.items()}
        if "state1" in held:  # bitsandbytes: bytes where it keeps their scales, and a count in Python
            packed = [key for key in ("state1", "state2") if f"absmax{key[-1]}" in held]
            as_bytes = {key: moments[key].to(torch.uint8) for key in packed}
            return {"step": num_updates} | moments | as_bytes
        device = parameter.device if self._fused else torch.device("cpu")
        return {"step": torch.tensor(float(num_updates), device=device)} | moments

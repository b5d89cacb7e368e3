"""Precision as one object: autocast around the forward pass, and fp16's loss scale on the device.

Own, because the wrappers skip fp16 on CPU in silence (accelerate 1.15: outputs stay fp32, no scaler)
and because one object must serve every backend.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from launcher.errors import LaunchMismatch, Problem

COMPUTE_DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "bf16-emulated": torch.bfloat16,
    "fp16": torch.float16,
}


@dataclass(frozen=True, kw_only=True)
class StepPrecision:
    """The arithmetic of a step: `name` as in the recipe, on `device_type` cuda or cpu."""

    name: str
    device_type: str

    @property
    def compute_dtype(self) -> torch.dtype:
        """The type of matrix products."""
        return COMPUTE_DTYPES[self.name]

    def autocast(self) -> AbstractContextManager[object]:
        """Around the forward pass; does nothing in fp32.

        Without torch's cache of cast weights: it would keep a half copy of every trained matrix until the
        forward pass ends, of gathered ones too, and a model uses each of them once.
        """
        if self.compute_dtype is torch.float32:
            return nullcontext()
        return torch.autocast(self.device_type, dtype=self.compute_dtype, cache_enabled=False)

    def check(self, seen: torch.dtype) -> None:
        """Raise LaunchMismatch where a linear layer's output had another type than asked for."""
        if seen is not self.compute_dtype:
            raise LaunchMismatch(
                Problem(
                    where="training.precision",
                    what=f"{self.name} was asked for, but a linear layer computed in {seen}",
                    right=f"outputs of {self.compute_dtype}",
                    type="training.precision=fp32, or report this with the run's environment.json",
                )
            )


class LossScale:
    """fp16's dynamic loss scale, kept on the device: torch's GradScaler rule without its host reads.

    After `interval` finite steps the scale doubles; a non-finite step halves it. `None`-like for
    other precisions: the scale is 1 and never moves.
    """

    def __init__(self, precision: StepPrecision, *, initial: float = 2.0**16, interval: int = 2000) -> None:
        """Live for fp16 only."""
        self.is_live = precision.name == "fp16"
        self.interval = interval
        start = initial if self.is_live else 1.0
        self.scale = torch.full((), start, dtype=torch.float32, device=precision.device_type)
        self.finite_steps = torch.zeros((), dtype=torch.float32, device=precision.device_type)

    def update(self, non_finite: Tensor) -> None:
        """Move the scale after a step; `non_finite` is a scalar, 1 where the step was skipped."""
        if not self.is_live:
            return
        bad = non_finite > 0
        count = torch.where(bad, 0.0, self.finite_steps + 1)
        grown = count >= self.interval
        factor = torch.where(bad, 0.5, torch.where(grown, 2.0, 1.0))
        self.scale = self.scale * factor
        self.finite_steps = torch.where(grown, 0.0, count)

    def state(self) -> dict[str, float]:
        """For a checkpoint; empty where nothing is scaled, so that fp16 may go on from there."""
        if not self.is_live:
            return {}
        return {"scale": float(self.scale), "finite_steps": float(self.finite_steps)}

    def load_state(self, state: dict[str, float]) -> None:
        """From a checkpoint. Another precision's scale is left alone: bf16 goes on from fp16 unscaled."""
        if not self.is_live or state.get("scale", 1.0) <= 1.0:
            return
        self.scale.fill_(state["scale"])
        self.finite_steps.fill_(state["finite_steps"])

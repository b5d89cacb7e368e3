"""How much of the trained weights moves where they are of a half type: updates there may round to nothing.

A weight of bf16 has 8 significant bits: an update below 1/512 of it leaves it as it was, and the loss falls
no further without any error. Weights in fp32 do not have that; nothing is measured there.
"""

import torch
from torch import Tensor

from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.state import StepRecord
from launcher.units import format_bytes

# Steps between two looks.
INTERVAL = 100
# Most values of one rank that are looked at, evenly over all trained tensors.
SAMPLE = 2**20
# fp32 in the place of a half type: 2 bytes more for the weight and its gradient each, 4 for two moments.
MASTER_BYTES = 8
# Told again only where the fraction has fallen to this part of what was told last.
TOLD_AGAIN = 0.5


class Movement(Callback):
    """Compares a sample of the trained values with what it was 100 steps before, on the device."""

    def __init__(self, interval: int = INTERVAL) -> None:
        """`interval` in steps."""
        self.interval = interval
        self.before: list[Tensor] = []
        self.coming: Tensor | None = None
        self.fraction: float | None = None
        self.told: float | None = None
        self.first_step = 0
        self.names: set[str] = set()

    def start(self, job: Job) -> None:
        """Take the sample; nothing where no trained tensor is of a half type."""
        self.look_at(job, half_trained(job))

    def look_at(self, job: Job, names: set[str]) -> None:
        """Take the sample from these parameters."""
        self.names = names
        self.first_step = job.progress.step
        self.before = self._sample(job) if names else []

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Compare when 100 steps are over; the answer is read one step later, when it has long arrived."""
        if not self.before:
            return
        if self.coming is not None:
            self._tell(job, record.step - 1)
        if (record.step - self.first_step) % self.interval == 0:
            now = self._sample(job)
            changed = sum((new != old).sum() for new, old in zip(now, self.before, strict=True))
            self.coming = torch.as_tensor(changed)
            self.before = now
        if record.step == job.total_steps and self.coming is not None:
            self._tell(job, record.step)

    def _sample(self, job: Job) -> list[Tensor]:
        """Every n-th value of each watched tensor, copied."""
        named = [(name, tensor) for name, tensor in job.strategy.local_tensors() if name in self.names]
        stride = max(1, sum(tensor.numel() for _, tensor in named) // SAMPLE)
        return [tensor.reshape(-1)[::stride].clone() for _, tensor in named]

    def _tell(self, job: Job, step: int) -> None:
        assert self.coming is not None
        size = sum(tensor.numel() for tensor in self.before)
        parts = job.world.gather((int(self.coming), size))
        self.coming = None
        self.fraction = sum(part[0] for part in parts) / max(1, sum(part[1] for part in parts))
        job.metrics.write({"step": step, "changed_fraction": round(self.fraction, 6)})
        if self.told is None or self.fraction < TOLD_AGAIN * self.told:
            self.told = self.fraction
            job.say(warning(job, step, self.fraction, self.interval))


def half_trained(job: Job) -> set[str]:
    """Names of trained parameters that are bf16 or fp16."""
    halves = (torch.bfloat16, torch.float16)
    return {name for name, parameter in job.strategy.named_trainable() if parameter.dtype in halves}


def warning(job: Job, step: int, fraction: float, interval: int) -> str:
    """The line: what part of the weights moved, and what fp32 would cost."""
    price = format_bytes(MASTER_BYTES * job.num_trained)
    return (
        f"step {step}: warning: {fraction:.1%} of the {job.plan.weights_dtype} weights changed in the last "
        f"{interval} steps; smaller updates are rounded away. model.dtype=auto keeps fp32 weights and "
        f"moments: {price} more over all ranks ({MASTER_BYTES} bytes a trained parameter)"
    )

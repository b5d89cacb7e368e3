"""After the first updates: every trainable tensor has moved, and nothing frozen has.

A dead tensor is silent: the loss falls through the others. Causes seen: checkpointing that drops the
graph of an adapter inside the blocks, a layer opened after the engine was built.
"""

import torch
from torch import Tensor, nn

from launcher.errors import Problem, TrainError
from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.state import StepRecord

# LoRA's first matrix has no gradient until the second one has left zero, one update later; one more
# for an update that was too small to show.
UPDATES = 3
_PIECE = 2**23
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def mark(tensor: Tensor) -> Tensor:
    """A number that changes when any bit of the tensor does (almost surely), left on the device.

    Squares keep opposite changes from cancelling; pieces keep a large embedding's copy small.
    """
    flat = tensor.detach().contiguous().view(-1)
    pieces = flat.view(_INTEGERS[flat.element_size()]).split(_PIECE)
    return torch.stack(
        [(wide := piece.to(torch.int64)).mul(31).add_(wide * wide).sum() for piece in pieces]
    ).sum()


def marks(module: nn.Module) -> dict[str, int]:
    """The mark of every parameter, read together."""
    named = [(name, mark(parameter)) for name, parameter in module.named_parameters() if parameter.numel()]
    values = torch.stack([value for _, value in named]).tolist()
    return dict(zip((name for name, _ in named), values, strict=True))


def findings(module: nn.Module, before: dict[str, int]) -> tuple[list[str], list[str]]:
    """Names of trainable tensors that stand still, and of frozen ones that have moved."""
    after = marks(module)
    trainable = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    still = [name for name in after if name in trainable and after[name] == before[name]]
    moved = [name for name in after if name not in trainable and after[name] != before[name]]
    return still, moved


class Audit(Callback):
    """Looks once, after the third update with a rate above zero."""

    def __init__(self) -> None:
        """Nothing is marked before `start`."""
        self.before: dict[str, int] = {}
        self.updates = 0
        self.done = False

    def start(self, job: Job) -> None:
        """Mark every tensor as it is before the first step."""
        self.before = marks(job.module)

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Count the updates that can have moved something."""
        self.updates += not record.skipped and record.learning_rate > 0

    def is_due(self, job: Job, step: int) -> bool:
        """Right after the last of the first updates."""
        return not self.done and self.updates >= UPDATES - 1

    def run(self, job: Job) -> None:
        """Raise TrainError with the list of dead tensors."""
        if self.updates < UPDATES:
            return
        self.done = True
        still, moved = findings(job.module, self.before)
        self.before = {}
        if still or moved:
            raise TrainError(_problem(still, moved))
        job.say(f"audit: every trained tensor moved within {UPDATES} updates, nothing frozen did")


def _problem(still: list[str], moved: list[str]) -> Problem:
    parts = []
    if still:
        parts.append(f"{len(still)} trained tensors have not moved: {_some(still)}")
    if moved:
        parts.append(f"{len(moved)} frozen tensors have moved: {_some(moved)}")
    return Problem(
        where=f"after {UPDATES} updates",
        what="; ".join(parts),
        right="every trained tensor gets gradients, and only those are updated",
        type="training.activation_checkpointing=false to see whether checkpointing cuts them off, "
        "or other adapter.lora_target_modules",
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

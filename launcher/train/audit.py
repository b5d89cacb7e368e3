"""After the first updates: every trainable tensor has moved, and nothing frozen has.

A dead tensor is silent: the loss falls through the others. Causes seen: checkpointing that drops the
graph of an adapter inside the blocks, a layer opened after the engine was built.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from launcher.errors import Problem, TrainError
from launcher.train.callbacks.callback import Callback
from launcher.train.job import Job
from launcher.train.state import StepRecord

# LoRA's first matrix has no gradient until the second one has left zero, one update later; one more
# for an update that was too small to show.
UPDATES = 3
HALVES = (torch.bfloat16, torch.float16)
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


def marks(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, int]:
    """The mark of every tensor, read together; 0 for one without elements."""
    named = [(name, mark(tensor) if tensor.numel() else torch.zeros(())) for name, tensor in tensors]
    values = torch.stack([value.to(named[0][1].device, torch.int64) for _, value in named]).tolist()
    return dict(zip((name for name, _ in named), values, strict=True))


def findings(trainable: set[str], changed: dict[str, bool]) -> tuple[list[str], list[str]]:
    """Names of trainable tensors that stand still, and of frozen ones that have moved."""
    still = [name for name, has_moved in changed.items() if name in trainable and not has_moved]
    moved = [name for name, has_moved in changed.items() if name not in trainable and has_moved]
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
        self.before = marks(job.strategy.local_tensors())

    def reopened(self, job: Job) -> None:
        """Watch the first updates of every segment: what has opened must move, the rest not."""
        self.updates, self.done = 0, False
        self.start(job)

    def on_record(self, job: Job, record: StepRecord) -> None:
        """Count the updates that can have moved something."""
        # Without any gradient nothing can: a step of masked rows, or numbers that are told of elsewhere.
        self.updates += not record.skipped and record.learning_rate > 0 and record.grad_norm > 0

    def is_due(self, job: Job, step: int) -> bool:
        """Right after the last of the first updates."""
        return not self.done and self.updates >= UPDATES - 1

    def run(self, job: Job) -> None:
        """Raise TrainError with the list of dead tensors."""
        if self.updates < UPDATES:
            return
        self.done = True
        after = marks(job.strategy.local_tensors())
        on_ranks = job.world.gather({name: after[name] != self.before[name] for name in after})
        changed = {name: any(part[name] for part in on_ranks) for name in after}
        trained = dict(job.strategy.named_trainable())
        still, moved = findings(set(trained), changed)
        # A half type rounds small updates away: that is no cut graph, and Movement tells how much moves.
        dead = [name for name in still if trained[name].dtype not in HALVES]
        self.before = {}
        if dead or moved:
            raise TrainError(_problem(dead, moved))
        if still:
            job.say(_rounded(still, len(trained)))
            return
        job.say(f"audit: every trained tensor moved within {UPDATES} updates, nothing frozen did")


def _rounded(still: list[str], num_trained: int) -> str:
    return (
        f"audit: warning: {len(still)} of {num_trained} trained tensors have not moved within {UPDATES} "
        f"updates ({_some(still)}): their half type rounds them away; model.dtype=auto keeps fp32 weights"
    )


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

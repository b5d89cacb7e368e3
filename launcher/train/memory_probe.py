"""Before the first step: what will need the most memory is done once, and nothing is changed by it.

The longest batch goes forward and backward, the optimizer makes its states, the longest batch goes again
beside them, then the largest evaluation batch and a save's gathering. Every loss is made NaN, so that the
step that follows is skipped by each backend as any other step that is not finite.
"""

from typing import Any

import numpy as np
import torch

from launcher.backends.options import BACKENDS
from launcher.data.batches_torch import Batch, Window, collate
from launcher.data.order import spread, spread_tokens
from launcher.data.ragged import Int64
from launcher.data.tokens import TokenStore
from launcher.errors import Problem, TrainError
from launcher.train.audit import marks
from launcher.train.job import Job
from launcher.train.retry import Retry, in_pieces
from launcher.units import format_bytes


def wants_probe(job: Job) -> bool:
    """Whether the recipe asks for it; by itself on a GPU, whose memory ends hard."""
    asked = job.recipe.training.memory_probe
    return job.world.device.type == "cuda" if asked == "auto" else asked


def probe_memory(job: Job, retry: Retry) -> None:
    """Find out now whether the run fits. Every rank must call.

    Raises OutOfMemory where it does not, TrainError where anything was changed by looking.
    """
    before = _state(job)
    rng, scale = _random_states(job), job.strategy.loss_scale.state()
    job.strategy.module.train()
    for _ in range(2):  # the second time with the states beside it
        _spoilt_step(job, retry)
    with retry.guarded("evaluation", 0):
        _evaluate(job)
    with retry.guarded("a save", 0):
        for _ in job.strategy.state():
            pass
    job.strategy.restore_loss_scale(scale)
    _restore(job, rng)
    _require_unchanged(before, _state(job))
    rows, length = _longest(job)
    job.say(
        f"memory probe: {rows} rows of {length} tokens, optimizer states, evaluation and a save fit; "
        f"peak so far {format_bytes(job.measure.peak_bytes())}"
    )


def _spoilt_step(job: Job, retry: Retry) -> None:
    window = _window(job)
    with job.measure.phase("probe"):
        retry.run(window, spoilt=True)
        with retry.guarded("the optimizer's step", 0):
            job.strategy.set_learning_rate(0.0)
            outcome = job.strategy.step()
    if not float(outcome.skipped):
        raise TrainError(_problem("a step whose loss is NaN was not skipped"))


def _window(job: Job) -> Window:
    """The longest micro batch, twice where a step has several: gradients then lie beside the second."""
    rows = _longest_rows(job, job.store)
    batch = collate(job.store, rows, job.tokenizer.pad_token_id, job.recipe.data.pad_to_multiple_of)
    copies = min(2, job.plan.step.accumulation_steps)
    return Window(
        step=0,
        epoch=0.0,
        micro_batches=[batch] * copies,
        num_targets=1,
        num_rows=len(rows),
        num_tokens=int(job.order.lengths[rows].sum()),
    )


def _longest_rows(job: Job, store: TokenStore) -> Int64:
    """The rows of the largest micro batch that any step can have."""
    every = np.arange(len(store), dtype=np.int64)
    tokens = job.recipe.data.micro_batch_tokens
    if tokens is not None:
        return spread_tokens(every, store.lengths, tokens, 0, 1)[0]
    return spread(every, store.lengths, job.plan.step.micro_batch_size, 0, 1)[0]


def _longest(job: Job) -> tuple[int, int]:
    rows = _longest_rows(job, job.store)
    return len(rows), int(job.order.lengths[rows].max())


def _evaluate(job: Job) -> None:
    """The largest evaluation batch, forward only."""
    store, asked = job.eval_store, job.recipe.training.per_device_eval_batch_size
    if store is None:
        return
    size = job.plan.step.micro_batch_size if asked == "auto" else asked
    rows = spread(np.arange(len(store), dtype=np.int64), store.lengths, size, 0, 1)[0]
    batch = collate(store, rows, job.tokenizer.pad_token_id)

    def forward(part: Batch) -> None:
        job.strategy.module(**{key: tensor.to(job.world.device) for key, tensor in part.items()})

    job.strategy.module.eval()
    with torch.no_grad(), job.measure.phase("probe evaluation"):
        if BACKENDS.get(job.plan.backend).sharding.parameters:
            forward(batch)
        else:
            in_pieces(batch, forward, job.world.device)
    job.strategy.module.train()


def _state(job: Job) -> dict[str, int]:
    """A mark of every weight and every moment of this rank."""
    found = dict(job.strategy.local_tensors())
    for number, held in enumerate(job.strategy.optimizer.state.values()):
        tensors = {key: value for key, value in held.items() if isinstance(value, torch.Tensor)}
        found |= {f"state {number} {key}": value for key, value in tensors.items() if bool(value.any())}
    return marks(found.items())


def _random_states(job: Job) -> list[Any]:
    states = [torch.get_rng_state()]
    return (
        [*states, torch.cuda.get_rng_state(job.world.device)] if job.world.device.type == "cuda" else states
    )


def _restore(job: Job, states: list[Any]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], job.world.device)


def _require_unchanged(before: dict[str, int], after: dict[str, int]) -> None:
    """Weights and what the optimizer held bit for bit; fresh states are zeros, which are left out."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    if changed:
        raise TrainError(_problem(f"{len(changed)} tensors were changed by it ({changed[0]}, ...)"))


def _problem(what: str) -> Problem:
    return Problem(
        where="memory probe",
        what=what,
        right="nothing is changed by looking",
        type="training.memory_probe=false, and report this with the run's environment.json",
    )

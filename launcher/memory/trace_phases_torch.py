"""The phases of a traced run, each with its marks: two steps, an evaluation, a save."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from launcher.backends.strategy_torch import Strategy
from launcher.memory.live_bytes_torch import LiveBytes
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_tags_torch import tag_gradients, tag_states
from launcher.step.micro import accumulate
from launcher.step.module import TrainModule

STEPS = 2
Around = Callable[[str], Any]


@dataclass(kw_only=True)
class Traced:
    """A connected module under a tracker, and how a phase is told to whoever else measures."""

    request: TraceRequest
    tracker: LiveBytes
    module: TrainModule
    strategy: Strategy
    around: Around


def _batch(request: TraceRequest, rows: int) -> dict[str, Tensor]:
    shape = (rows, request.seq_len)
    vocabulary = int(request.config.get("vocab_size", 2))
    tokens = torch.arange(rows * request.seq_len).reshape(shape) % (vocabulary - 1) + 1
    mask = torch.ones(shape, dtype=torch.int64)
    if request.padded:
        mask[:, -1] = 0
    if request.task == "classification":
        return {"input_ids": tokens, "attention_mask": mask, "labels": torch.zeros(rows, dtype=torch.int64)}
    return {"input_ids": tokens, "attention_mask": mask, "labels": tokens.clone()}


def train(run: Traced) -> None:
    """The same batch twice: the second step meets the states that the first has made."""
    request, log, strategy = run.request, run.tracker.log, run.strategy
    log.mark("batch")
    batch = _batch(request, request.micro_batch)
    run.tracker.tag(batch.values(), "batch")
    targets = request.micro_batch * request.accumulation_steps * request.num_ranks
    targets *= 1 if request.task == "classification" else request.seq_len - 1
    _watch_backward(run)
    _count_updates(run)
    _watch_engine(run)
    for step in range(STEPS):
        log.mark("forward/before")
        with run.around("step"):
            accumulate(
                strategy,
                [batch] * request.accumulation_steps,
                num_targets=targets,
                seed=1,
                step=step,
                rank=strategy.parts.rank,
            )
            tag_gradients(run.tracker, strategy)
        log.mark("optimizer")
        with run.around("optimizer"):
            _step(run)
        tag_states(run.tracker, strategy)
        log.mark("between")


def _watch_backward(run: Traced) -> None:
    """Mark where a micro batch's backward pass begins and ends."""
    plain, log = run.strategy.backward, run.tracker.log

    def backward(loss: Tensor) -> None:
        log.mark("backward/before")
        plain(loss)
        log.mark("backward/end")

    run.strategy.backward = backward  # type: ignore[method-assign]
    run.module.register_forward_pre_hook(
        lambda *call: log.mark("forward/before") if run.module.training else None
    )


def _count_updates(run: Traced) -> None:
    """AdamW divides by a power of its number of updates: 1 while it steps; elsewhere 0 means no overflow."""
    answers = run.tracker.answers
    if answers is not None:
        between = answers["float"]
        run.strategy.optimizer.register_step_pre_hook(lambda *call: answers.update(float=1.0))
        run.strategy.optimizer.register_step_post_hook(lambda *call: answers.update(float=between))


def _watch_engine(run: Traced) -> None:
    """Mark where DeepSpeed has its norm, which takes fp64 copies, and begins with what the step needs."""
    engine, log = getattr(run.strategy, "zero", None), run.tracker.log
    name = next((each for each in ("scaled_global_norm", "_get_norm_groups") if hasattr(engine, each)), "")
    if not name:
        return
    plain = getattr(engine, name)

    def norm(*arguments: Any, **named: Any) -> Any:
        found = plain(*arguments, **named)
        log.mark("optimizer/update")
        return found

    setattr(engine, name, norm)


def _step(run: Traced) -> None:
    """One update. A flag that is read on the way asks whether something is not finite, not about a mask."""
    answers = run.tracker.answers
    before = dict(answers or {})
    if answers is not None:
        answers["bool"] = False
    run.strategy.set_learning_rate(1.0)
    run.strategy.step()
    if answers is not None:
        answers.update(before)


def evaluate(run: Traced) -> None:
    """One batch of evaluation, forward only."""
    log, module = run.tracker.log, run.strategy.module
    batch = _batch(run.request, run.request.eval_batch or run.request.micro_batch)
    run.tracker.tag(batch.values(), "batch")
    module.eval()
    log.mark("evaluate/before")
    with run.around("evaluate"), torch.no_grad():
        module(**{key: tensor.to(run.strategy.parts.device) for key, tensor in batch.items()})
    module.train()
    log.mark("between")


def save(run: Traced) -> None:
    """A checkpoint's tensors and the whole weights, one after the other, as they are written."""
    run.tracker.log.mark("save")
    with run.around("save"):
        for _, _state in run.strategy.state():
            pass
        for _, _weight in run.strategy.whole_weights():
            pass
    run.tracker.log.mark("end")

"""Runs the launcher's own step, optimizer and loss under the live-byte tracker: `python -m` this file.

Reads a request as JSON on stdin, writes what was alive at the worst moments as JSON on stdout. The
architecture comes from its configuration; nothing here knows one.
"""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor._sharding_prop import ShardingPropagator

from launcher.backends.options import BACKENDS
from launcher.backends.strategy_torch import Parts, Strategy
from launcher.backends.zero import resolve
from launcher.errors import RecipeError
from launcher.facts import StepSettings
from launcher.memory.cuda_kernels_torch import CudaKernels, workspace_bytes
from launcher.memory.gloo_kernels_torch import gloo_bytes
from launcher.memory.live_bytes_torch import LiveBytes, Workspace
from launcher.memory.trace import AS_LOADED
from launcher.memory.trace_log import TraceLog
from launcher.memory.trace_marks_torch import mark_blocks
from launcher.memory.trace_model_torch import build_module
from launcher.memory.trace_replaced import replaced
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_tags_torch import tag_gradients, tag_states, tag_traffic, tag_weights
from launcher.memory.trace_world_torch import fake_world, settle_buckets
from launcher.optim.build_torch import build_optimizer, parameter_groups
from launcher.precision_torch import LossScale, StepPrecision
from launcher.registry import load_attribute
from launcher.step.micro import accumulate
from launcher.step.module import TrainModule

STEPS = 2
Around = Callable[[str], Any]


@dataclass(kw_only=True)
class _Run:
    """A connected module under a tracker, and how a phase is told to whoever else measures."""

    request: TraceRequest
    tracker: LiveBytes
    module: TrainModule
    strategy: Strategy
    around: Around


def record(
    request: TraceRequest,
    *,
    depth: int | None = None,
    fake: bool = True,
    rank: int = 0,
    around: Around | None = None,
    device: str = "cpu",
) -> tuple[TraceLog, int]:
    """The log of loading, two steps, an evaluation and a save; and the model's number of layers.

    `fake`: tensors without memory, ranks without processes; else a real run of this rank, in its process
    group, on `device`. `around(name)` gives a context for each phase (a profiler's, say). On a card nobody
    watches but it: the log stays empty.
    """
    around = around or (lambda name: nullcontext())
    tracker = LiveBytes(
        answers=_answers(request) if fake else None,
        workspace=_workspace(request, fake=fake),
    )
    place = torch.device(device)
    with ExitStack() as modes:
        if fake:
            modes.enter_context(fake_world(request))
            modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        if place.type == "cpu":
            modes.enter_context(tracker)
            # DTensor runs an operator on fake tensors of whole shapes to know its result's (torch 2.13).
            modes.enter_context(replaced(ShardingPropagator, _fake_mode_lock=tracker.paused))
        if request.kernels == "cuda" and fake:  # without values only: these kernels run on no CPU
            modes.enter_context(CudaKernels(compute_capability=request.compute_capability))
        run, depth = _load(request, tracker, around, place, depth=depth, fake=fake, rank=rank)
        _train(run)
        _evaluate(run)
        _save(run)
        tag_traffic(tracker, run.strategy)
    return tracker.log, depth


def _workspace(request: TraceRequest, *, fake: bool) -> Workspace | None:
    """What kernels need while they run: a card's in its place, gloo's between ranks on a CPU."""
    if request.kernels == "cuda":
        return workspace_bytes if fake else None
    return gloo_bytes if request.num_ranks > 1 else None


def _answers(request: TraceRequest) -> dict[str, bool | float]:
    """What a host read finds: masks that hide something or nothing; norms, flags and scales of a good step.

    DeepSpeed divides by a norm and a scale that it reads, and keeps its flags in bytes; torch's step on
    whole parameters reads nothing but its flag, a float.
    """
    is_engine = BACKENDS.get(request.backend).ds_config is not None
    return {"bool": not request.padded, "float": 1.0 if is_engine else 0.0, "int": 0}


def _load(
    request: TraceRequest,
    tracker: LiveBytes,
    around: Around,
    place: torch.device,
    *,
    depth: int | None,
    fake: bool,
    rank: int,
) -> tuple[_Run, int]:
    tracker.log.mark("load")
    with around("load"):
        module, depth = build_module(request, depth=depth, fake=fake, device_type=place.type)
        module.train()
        whole = tracker.numbers(module.parameters())
        strategy = _connect(request, module, place, rank)
        tag_weights(tracker, strategy)
        for number in whole:  # where a backend divides or flattens them they go
            tracker.log.tags.setdefault(number, AS_LOADED)
    if fake:
        settle_buckets(strategy.module)
    mark_blocks(module, tracker.log)
    return _Run(request=request, tracker=tracker, module=module, strategy=strategy, around=around), depth


def _connect(request: TraceRequest, module: TrainModule, place: torch.device, rank: int) -> Strategy:
    backend = BACKENDS.get(request.backend)
    options = backend.options(**request.backend_options)
    per_rank = request.micro_batch * request.accumulation_steps
    step = StepSettings(
        global_batch_size=per_rank * request.num_ranks,
        micro_batch_size=request.micro_batch,
        accumulation_steps=request.accumulation_steps,
        num_ranks=request.num_ranks,
    )
    config = backend.ds_config(options) if backend.ds_config else {}
    if config:
        config = resolve(config, step=step, precision=request.precision, max_grad_norm=request.max_grad_norm)
    parts = Parts(
        module=module,
        groups=parameter_groups(module, 0.01),
        make_optimizer=lambda groups: _optimizer(request, groups),
        device=place,
        rank=rank,
        settings=step,
        max_grad_norm=request.max_grad_norm,
        loss_scale=LossScale(StepPrecision(name=request.precision, device_type=place.type)),
        name=request.backend,
        options=options,
        config=config,
    )
    strategy: Strategy = load_attribute(backend.connect)(parts)
    return strategy


def _optimizer(request: TraceRequest, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    fused = request.optim == "adamw_torch_fused"
    made = build_optimizer(groups, learning_rate=1e-4, betas=(0.9, 0.999), epsilon=1e-8, fused=fused)
    if request.kernels == "cuda" and not fused:
        # torch chooses foreach by itself on a card, never on a CPU.
        for group in made.param_groups:
            group["foreach"] = True
    return made


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


def _train(run: _Run) -> None:
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


def _watch_backward(run: _Run) -> None:
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


def _count_updates(run: _Run) -> None:
    """AdamW divides by a power of its number of updates: 1 while it steps; elsewhere 0 means no overflow."""
    answers = run.tracker.answers
    if answers is not None:
        between = answers["float"]
        run.strategy.optimizer.register_step_pre_hook(lambda *call: answers.update(float=1.0))
        run.strategy.optimizer.register_step_post_hook(lambda *call: answers.update(float=between))


def _watch_engine(run: _Run) -> None:
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


def _step(run: _Run) -> None:
    """One update. A flag that is read on the way asks whether something is not finite, not about a mask."""
    answers = run.tracker.answers
    before = dict(answers or {})
    if answers is not None:
        answers["bool"] = False
    run.strategy.set_learning_rate(1.0)
    run.strategy.step()
    if answers is not None:
        answers.update(before)


def _evaluate(run: _Run) -> None:
    log, module = run.tracker.log, run.strategy.module
    batch = _batch(run.request, run.request.eval_batch or run.request.micro_batch)
    run.tracker.tag(batch.values(), "batch")
    module.eval()
    log.mark("evaluate/before")
    with run.around("evaluate"), torch.no_grad():
        module(**{key: tensor.to(run.strategy.parts.device) for key, tensor in batch.items()})
    module.train()
    log.mark("between")


def _save(run: _Run) -> None:
    """A checkpoint's tensors and the whole weights, one after the other, as they are written."""
    run.tracker.log.mark("save")
    with run.around("save"):
        for _, _state in run.strategy.state():
            pass
        for _, _weight in run.strategy.whole_weights():
            pass
    run.tracker.log.mark("end")


def main() -> int:
    """Trace each depth of the request on stdin; what is wrong with the recipe itself is answered too."""
    found = json.load(sys.stdin)
    request = TraceRequest.from_json(json.dumps(found["request"]))
    answers = []
    try:
        for depth in found["depths"]:
            log, layers = record(request, depth=depth)
            answers.append(summary(log, layers))
    except RecipeError as error:
        json.dump([asdict(problem) for problem in error.problems], sys.stdout)
        return error.exit_code
    json.dump(answers, sys.stdout)
    return 0


def summary(log: TraceLog, layers: int) -> dict[str, Any]:
    """The worst moment of every mark, with what it is made of."""
    from launcher.memory.trace_segments import reserved_bytes

    peaks = {mark: peak.by_tag for mark, peak in log.peaks().items()}
    return {"layers": layers, "peaks": peaks, "reserved": reserved_bytes(log)}


if __name__ == "__main__":
    sys.exit(main())

"""Runs the launcher's own step, optimizer and loss under the live-byte tracker: `python -m` this file.

Reads a request as JSON on stdin, writes what was alive at the worst moments as JSON on stdout. The
architecture comes from its configuration; nothing here knows one.
"""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from launcher.backends.options import BACKENDS
from launcher.backends.strategy_torch import Parts, Strategy
from launcher.backends.zero import resolve
from launcher.facts import StepSettings
from launcher.memory.cuda_kernels_torch import CudaKernels, workspace_bytes
from launcher.memory.live_bytes_torch import LiveBytes
from launcher.memory.trace_log import TraceLog
from launcher.memory.trace_marks_torch import mark_blocks
from launcher.memory.trace_model_torch import build_module
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_world_torch import fake_world, hand_buckets_back
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
        answers={"bool": not request.padded, "float": 0.0} if fake else None,
        workspace=workspace_bytes if request.kernels == "cuda" and fake else None,
    )
    place = torch.device(device)
    with ExitStack() as modes:
        if fake:
            modes.enter_context(fake_world(request))
            modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        if place.type == "cpu":
            modes.enter_context(tracker)
        if request.kernels == "cuda" and fake:  # without values only: these kernels run on no CPU
            modes.enter_context(CudaKernels(compute_capability=request.compute_capability))
        run, depth = _load(request, tracker, around, place, depth=depth, fake=fake, rank=rank)
        _train(run)
        _evaluate(run)
        _save(run)
        _tag_traffic(run)
    return tracker.log, depth


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
        _tag_weights(tracker, module)
        strategy = _connect(request, module, place, rank)
        _tag_weights(tracker, module)
    if fake:
        hand_buckets_back(strategy.module)
    mark_blocks(module, tracker.log)
    return _Run(request=request, tracker=tracker, module=module, strategy=strategy, around=around), depth


def _tag_weights(tracker: LiveBytes, module: nn.Module) -> None:
    """Before and after sharding: what is divided is weights on both sides."""
    parameters = [*module.parameters()]
    all_train = all(p.requires_grad for p in parameters)
    frozen = [_local(p) for p in parameters if not p.requires_grad]
    tracker.tag((_local(p) for p in parameters if p.requires_grad), "weights" if all_train else "adapter")
    tracker.tag(frozen, "weights")
    tracker.tag(module.buffers(), "weights")


def _local(tensor: Any) -> Tensor:
    found: Tensor = getattr(tensor, "_local_tensor", tensor)
    return found


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
            _tag_gradients(run)
        log.mark("optimizer")
        with run.around("optimizer"):
            strategy.set_learning_rate(1.0)
            strategy.step()
        _tag_states(run)
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
        run.strategy.optimizer.register_step_pre_hook(lambda *call: answers.update(float=1.0))
        run.strategy.optimizer.register_step_post_hook(lambda *call: answers.update(float=0.0))


def _tag_gradients(run: _Run) -> None:
    found = [_local(p.grad) for p in run.module.parameters() if p.grad is not None]
    run.tracker.tag(found, "gradients")


def _tag_traffic(run: _Run) -> None:
    """What sharding gathers and sends: whole weights of a unit, and flat buffers on their way."""
    for module in run.module.modules():
        group = getattr(getattr(module, "_fsdp_state", None), "_fsdp_param_group", None)
        for parameter in group.fsdp_params if group else ():
            run.tracker.tag(parameter.all_gather_outputs, "gathered weights")
    log = run.tracker.log
    for number, birth in enumerate(log.births):
        if run.request.num_ranks > 1 and birth.origin == "empty.memory_format" and len(birth.shape) == 1:
            log.tags.setdefault(number, "communication buffers")


def _tag_states(run: _Run) -> None:
    for state in run.strategy.optimizer.state.values():
        run.tracker.tag([each for each in state.values() if isinstance(each, Tensor)], "optimizer states")


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
    """Trace each depth of the request on stdin."""
    found = json.load(sys.stdin)
    request = TraceRequest.from_json(json.dumps(found["request"]))
    answers = []
    for depth in found["depths"]:
        log, layers = record(request, depth=depth)
        answers.append(summary(log, layers))
    json.dump(answers, sys.stdout)
    return 0


def summary(log: TraceLog, layers: int) -> dict[str, Any]:
    """The worst moment of every mark, with what it is made of."""
    from launcher.memory.trace_segments import reserved_bytes

    peaks = {mark: peak.by_tag for mark, peak in log.peaks().items()}
    return {"layers": layers, "peaks": peaks, "reserved": reserved_bytes(log)}


if __name__ == "__main__":
    sys.exit(main())

"""Runs the launcher's own step, optimizer and loss under the live-byte tracker: `python -m` this file.

Reads a request as JSON on stdin, writes what was alive at the worst moments as JSON on stdout. The
architecture comes from its configuration; nothing here knows one.
"""

import json
import sys
from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch.distributed.tensor._sharding_prop import ShardingPropagator

from launcher.backends.options import BACKENDS
from launcher.backends.strategy_torch import Parts, Strategy
from launcher.backends.zero import resolve
from launcher.errors import RecipeError
from launcher.facts import StepSettings
from launcher.memory.cuda_kernels_torch import CudaKernels, workspace_bytes
from launcher.memory.fake_tensors_torch import QuickFakeMode
from launcher.memory.gloo_kernels_torch import gloo_bytes
from launcher.memory.live_bytes_torch import CARD, LiveBytes, Workspace
from launcher.memory.trace import AS_LOADED
from launcher.memory.trace_log import TraceLog
from launcher.memory.trace_marks_torch import mark_blocks
from launcher.memory.trace_model_torch import build_module
from launcher.memory.trace_phases_torch import Around, Traced, evaluate, save, train
from launcher.memory.trace_replaced import replaced
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_tags_torch import tag_traffic, tag_weights
from launcher.memory.trace_world_torch import fake_world, settle_buckets
from launcher.optim.build_torch import build_optimizer, parameter_groups
from launcher.precision_torch import LossScale, StepPrecision
from launcher.registry import load_attribute
from launcher.step.module import TrainModule


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
        card=CARD if fake else None,
    )
    place = CARD if fake else torch.device(device)
    with ExitStack() as modes:
        if fake:
            modes.enter_context(fake_world(request))
            modes.enter_context(QuickFakeMode(allow_non_fake_inputs=True))
        if place.type == "cpu":
            modes.enter_context(tracker)
            # DTensor runs an operator on fake tensors of whole shapes to know its result's (torch 2.13).
            modes.enter_context(replaced(ShardingPropagator, _fake_mode_lock=tracker.paused))
        if request.kernels == "cuda" and fake:  # without values only: these kernels run on no CPU
            modes.enter_context(CudaKernels(compute_capability=request.compute_capability))
        run, depth = _load(request, tracker, around, place, depth=depth, fake=fake, rank=rank)
        train(run)
        evaluate(run)
        save(run)
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
) -> tuple[Traced, int]:
    tracker.log.mark("load")
    with around("load"):
        module, depth = build_module(request, depth=depth, fake=fake, device_type=place.type)
        module.train()
        whole = tracker.numbers(module.parameters())
        if fake and request.backend.startswith("zero3"):  # it takes them to the card one by one
            tracker.log.elsewhere.update(whole)
        strategy = _connect(request, module, place, rank)
        tag_weights(tracker, strategy)
        for number in whole:  # where a backend divides or flattens them they go
            tracker.log.tags.setdefault(number, AS_LOADED)
    if fake:
        settle_buckets(strategy.module)
    mark_blocks(module, tracker.log)
    return Traced(request=request, tracker=tracker, module=module, strategy=strategy, around=around), depth


def _connect(request: TraceRequest, module: TrainModule, place: torch.device, rank: int) -> Strategy:
    backend = BACKENDS.get(request.backend)
    options = backend.options(**request.backend_options)
    if hasattr(options, "cpu_adam"):  # what steps in host RAM takes nothing of the card
        options = options.model_copy(update={"cpu_adam": "torch"})
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

"""Predicts memory by running the real step on tensors without values, in a process of its own. No torch here.

Two small depths are traced; every term of every moment is a straight line in the number of layers, so the
whole depth follows. It needs no knowledge of the architecture: it checks the closed form, and stands in
for it where there is none.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launcher.adapters.options import METHODS
from launcher.errors import EXIT_USAGE, BadValue, CannotTell, Problem
from launcher.memory.breakdown import PHASES, Breakdown, Phase, Standing, Term
from launcher.memory.cuda_kernels import cublas_workspace_bytes
from launcher.memory.reserved import COMMUNICATOR_BYTES, DEFAULT_CONTEXT_BYTES
from launcher.memory.takeover import BROADCAST_BYTES
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_segments import OWN_ROUNDING

TIMEOUT_S = 300.0
# DeepSpeed's defaults of stage3_max_live_parameters and stage3_max_reuse_distance.
ZERO3_ELEMENTS = 1_000_000_000
# What weights are called that a backend divides or flattens while it loads.
AS_LOADED = "weights as loaded"
_WHOLLY_ON_CARDS = ("single_gpu", "multi_gpu", "zero1", "zero2", "zero3", "fsdp2")
TRACED_BACKENDS = (*_WHOLLY_ON_CARDS, "zero2_offload", "zero3_offload", "fsdp2_offload")
_LAYER_KEYS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class DepthTrace:
    """One traced depth: bytes by tag at the worst moment of every mark, and what would be reserved."""

    layers: int
    peaks: Mapping[str, Mapping[str, int]]
    reserved: int


def trace(request: TraceRequest, *, timeout_s: float = TIMEOUT_S) -> Breakdown:
    """Memory of one rank, by phases. Raises CannotTell where the architecture cannot be traced."""
    if request.backend not in TRACED_BACKENDS:
        raise _not_traced(request.backend)
    layers = num_layers(request.config)
    found = run(request, depths_of(request), timeout_s=timeout_s)
    return breakdown(request, found, layers)


def num_layers(config: Mapping[str, Any]) -> int:
    """The number of blocks that a config.json states. Raises CannotTell where it states none."""
    for key in _LAYER_KEYS:
        if isinstance(config.get(key), int):
            return int(config[key])
    raise _refused(f"the configuration has none of {', '.join(_LAYER_KEYS)}")


def depths_of(request: TraceRequest) -> tuple[int, ...]:
    """The depths to trace.

    ZeRO-3 keeps gathered what it will use again within so many elements, and so many at once: a model that
    is smaller than both would keep all of itself, which a deep one does not. ZeRO-1/2 keep gradients until a
    bucket is full, DDP sends weights round in two buffers: fewer blocks than fill them make no straight line.
    """
    if not request.backend.startswith("zero3"):
        fill = -(-_buffered_elements(request) // _block_elements(request.config))
        return depths(request.config, least=fill)
    live = int(request.backend_options.get("stage3_max_live_parameters", ZERO3_ELEMENTS))
    least = -(-(live + ZERO3_ELEMENTS) // _block_elements(request.config))
    return depths(request.config, least=least)


def _buffered_elements(request: TraceRequest) -> int:
    """Elements of two buffers that blocks' gradients or weights fill up."""
    trains_base = METHODS.get(request.adapter["method"]).trains_base
    if request.backend.startswith("zero"):
        return 2 * int(request.backend_options.get("reduce_bucket_size", 50_000_000)) if trains_base else 0
    if request.backend != "multi_gpu" or trains_base:
        return 0
    width = 4.0 if request.weights_dtype == "float32" else 2.0
    return int(3 * BROADCAST_BYTES / (width if request.quantisation == "none" else 0.5))


def _block_elements(config: Mapping[str, Any]) -> int:
    """About the elements of one block: four square matrices and a gated feed-forward network."""
    hidden = int(config.get("hidden_size") or config.get("n_embd") or config.get("dim") or 1)
    inner = int(config.get("intermediate_size") or config.get("n_inner") or 4 * hidden)
    return 4 * hidden * hidden + (3 if config.get("intermediate_size") else 2) * hidden * inner


def depths(config: Mapping[str, Any], *, least: int = 4) -> tuple[int, ...]:
    """Two small depths whose blocks repeat as the whole model's do; the model's own where it is small.

    Four blocks give the first, second, last and second-last their own moments.
    """
    layers, period = num_layers(config), _period(config)
    first = period * -(-max(4, least) // period)
    second = first + max(2, period)
    return (first, second) if second < layers else (layers,)


def _period(config: Mapping[str, Any]) -> int:
    """After how many blocks the kinds of layers repeat (sliding and full attention in turns)."""
    kinds = config.get("layer_types")
    if not isinstance(kinds, list):
        pattern = config.get("sliding_window_pattern")
        return pattern if isinstance(pattern, int) and pattern > 0 else 1
    for period in range(1, len(kinds) + 1):
        if all(kind == kinds[index % period] for index, kind in enumerate(kinds)):
            return period
    return 1


def run(
    request: TraceRequest, wanted: Sequence[int], *, timeout_s: float = TIMEOUT_S
) -> tuple[DepthTrace, ...]:
    """Trace the depths in a subprocess; ZeRO-3's engine is slow, and gets one for each depth.

    Raises CannotTell with its last words where it fails, BadValue where the recipe could not run anywhere.
    """
    if importlib.util.find_spec("torch") is None:
        raise _refused("torch is not installed")
    parts = [[depth] for depth in wanted] if request.backend.startswith("zero3") else [[*wanted]]
    with ThreadPoolExecutor(len(parts)) as processes:
        found = [*processes.map(lambda part: _run_apart(request, part, timeout_s), parts)]
    return tuple(each for part in found for each in part)


def _run_apart(request: TraceRequest, wanted: list[int], timeout_s: float) -> list[DepthTrace]:
    text = json.dumps({"request": asdict(request), "depths": wanted})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "launcher.memory.trace_torch"],
            input=text,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _refused(f"no answer within {timeout_s:g} s") from error
    if done.returncode == EXIT_USAGE:
        raise BadValue([Problem(**each) for each in json.loads(_last_line(done.stdout))])
    if done.returncode:
        raise _refused((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:400])
    return [DepthTrace(**answer) for answer in json.loads(_last_line(done.stdout))]


def _last_line(text: str) -> str:
    """What stands below whatever libraries have printed."""
    return text.strip().splitlines()[-1]


def _environment() -> dict[str, str]:
    """No card, no network, one thread, no compiler (some libraries import torch's): nothing is computed."""
    parents = os.pathsep.join([str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])])
    quiet = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    quiet["TORCHDYNAMO_DISABLE"] = "1"
    return os.environ | quiet | {"PYTHONPATH": parents, "DS_ACCELERATOR": "cpu", "PYTHONWARNINGS": "ignore"}


def _refused(why: str) -> CannotTell:
    return CannotTell(
        Problem(
            where="memory trace",
            what=f"this model cannot be traced: {why}",
            right="torch and transformers with this architecture",
            type="launcher plan without --trace, where the architecture is in the catalogue",
        )
    )


def _not_traced(backend: str) -> CannotTell:
    """Why, and the nearest backend that is traced."""
    if backend == "model_parallel":
        why, nearest = "its blocks lie on several cards, and a trace follows one", "single_gpu"
    else:
        why = "it keeps tensors on a disk, and a trace has none that is written or read"
        nearest = f"{backend.partition('_')[0]}_offload"
    return CannotTell(
        Problem(
            where="memory trace",
            what=f"{backend} is not traced: {why}",
            right=f"the closed form, or a trace of {nearest}",
            type=f"launcher plan RECIPE, or launcher plan RECIPE --trace --backend {nearest}",
        )
    )


def breakdown(request: TraceRequest, found: Sequence[DepthTrace], layers: int) -> Breakdown:
    """The whole depth's phases from one or two traced depths."""
    moments = _flattened_where_there_is_room(request, extrapolate(found, layers))
    phases = tuple(phase for name in PHASES if (phase := _phase(request, name, moments)))
    peak = max(phase.num_bytes for phase in phases)
    low = -(-peak // OWN_ROUNDING) * OWN_ROUNDING
    high = max(low, _line([(each.layers, each.reserved) for each in found], layers))
    context = DEFAULT_CONTEXT_BYTES + (COMMUNICATOR_BYTES if request.num_ranks > 1 else 0)
    note = f"traced at {' and '.join(str(each.layers) for each in found)} of {layers} layers"
    return Breakdown(
        phases=phases,
        reserved_bytes=(low, high),
        process_bytes=(low + context, high + context),
        standing=Standing(kind="derived", note=note),
        method="trace",
    )


def _flattened_where_there_is_room(
    request: TraceRequest, moments: dict[str, dict[str, int]]
) -> dict[str, dict[str, int]]:
    """ZeRO-1/2 make one flat tensor of the weights, where the card has no room for both by way of host RAM.

    Source: deepspeed 0.19.8, stage_1_and_2.py, `flatten_on_accelerator`.
    """
    load = moments.get("load", {})
    has_room = request.card_bytes is None or sum(load.values()) <= request.card_bytes
    if has_room or request.backend not in ("zero1", "zero2"):
        return moments
    return moments | {"load": {tag: size for tag, size in load.items() if tag != AS_LOADED}}


def extrapolate(found: Sequence[DepthTrace], layers: int) -> dict[str, dict[str, int]]:
    """Bytes by tag at the worst moment of every mark that all depths share, at `layers` layers."""
    shared = set.intersection(*(set(each.peaks) for each in found))
    moments = {}
    for mark in (each for each in found[0].peaks if each in shared):
        tags = dict.fromkeys(tag for each in found for tag in each.peaks[mark])
        points = {tag: [(each.layers, each.peaks[mark].get(tag, 0)) for each in found] for tag in tags}
        moments[mark] = {tag: max(0, _line(pairs, layers)) for tag, pairs in points.items()}
    return moments


def _line(points: Sequence[tuple[int, int]], at: int) -> int:
    """The straight line through one (constant) or two points."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    return y0 if x0 == x1 else y0 + (y1 - y0) * (at - x0) // (x1 - x0)


def _phase(request: TraceRequest, name: str, moments: Mapping[str, Mapping[str, int]]) -> Phase | None:
    mine = {mark: tags for mark, tags in moments.items() if mark.partition("/")[0] == name}
    if not mine:
        return None
    mark, tags = max(mine.items(), key=lambda item: sum(item[1].values()))
    terms = [
        Term(name=tag, num_bytes=size, formula=f"traced, alive at {mark}")
        for tag, size in tags.items()
        if size
    ]
    if name != "load" and request.kernels == "cuda":
        size = cublas_workspace_bytes(request.compute_capability)
        terms.append(Term(name="cuBLAS workspaces", num_bytes=size, formula="one a thread, never freed"))
    return Phase(name=name, terms=tuple(sorted(terms, key=lambda term: -term.num_bytes)))

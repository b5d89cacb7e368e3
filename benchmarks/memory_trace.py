"""The live-byte tracker against torch.profiler's memory events, the trace against both, and its time.

`--only profiler`: real runs on this machine's CPU, every phase, every rank; bound 2 %.
`--only traced`: the trace, in a world that is not there, against rank 0 of those runs; bound 2 %.
`--only estimate`: the closed form's peaks over a grid of public models, without weights; bound 3 %.
`--lines FILE` notes every phase of every setting as it is found.
`--only time`: a 7B model's trace, start to answer, on every backend that is traced; bound 20 s.
"""

import argparse
import json
import os
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.forked_ranks import in_forks, warm_up
from benchmarks.paired import save, saved
from benchmarks.traced_models import (
    ENCODERS,
    sharded_request,
    sharded_requests,
    single_requests,
    tiny_request,
)
from launcher.adapters.count import count
from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.setting import Adapter, Setting
from launcher.memory.trace import TRACED_BACKENDS, DepthTrace, breakdown, depths_of, num_layers, trace
from launcher.memory.trace_request import TraceRequest, request_of
from launcher.models import catalogue
from launcher.models.read_shape import shape_of

__all__ = ["compare_ranks", "sharded_request", "tiny_request"]
PROFILER_BOUND, ESTIMATE_BOUND, TIME_BOUND_S = 0.02, 0.03, 20.0
DIVIDED = ("fsdp2", "zero1", "zero2", "zero3")
OFFLOADED = ("zero2_offload", "zero3_offload", "fsdp2_offload")
# Models that stand for the others: an encoder, a decoder with a wide head, a deep one.
SOME = ("google-bert/bert-base-uncased", "Qwen/Qwen2.5-1.5B", "huggyllama/llama-7b")
GRID = {
    "google-bert/bert-base-uncased": (16, 128),
    "FacebookAI/roberta-large": (8, 128),
    "openai-community/gpt2": (4, 512),
    "huggyllama/llama-7b": (1, 1024),
    "Qwen/Qwen2.5-1.5B": (2, 1024),
    "bigscience/bloom-560m": (2, 512),
}


def compare_ranks(request: TraceRequest) -> list[dict[str, list[int]]]:
    """Real ranks in forks of this process; each one's (tracked, profiled) bytes by phase."""
    warm_up()
    from launcher.memory.trace_profile_torch import compare_in_group

    def work(rank: int) -> dict[str, list[int]]:
        return compare_in_group(request, os.environ)

    return in_forks(work, request.num_ranks)


def against_profiler(only: str) -> Iterator[dict[str, Any]]:
    """One row a setting and rank: the error of every phase."""
    for label, request in [*single_requests(), *sharded_requests()]:
        if not re.search(only, label):
            continue
        try:
            found = compare_ranks(request)
        except RuntimeError as error:  # a setting that does not run is a row too
            print(f"{label:48s} failed: {str(error).strip().splitlines()[-1][:200]}", flush=True)
            yield {"setting": label, "failed": str(error)[-400:]}
            continue
        for rank, pairs in enumerate(found):
            yield _row(label if request.num_ranks == 1 else f"{label}, rank {rank}", pairs)


def without_ranks(only: str) -> Iterator[dict[str, Any]]:
    """The trace, on tensors without values in a world that is not there, against rank 0 of a real one."""
    for label, request in [*single_requests(), *sharded_requests()]:
        if not re.search(only, label):
            continue
        try:
            (fake,) = in_forks(lambda rank, request=request: _faked(request), 1)
            real = compare_ranks(request)[0]
        except RuntimeError as error:
            print(f"{label:48s} failed: {str(error).strip().splitlines()[-1][:200]}", flush=True)
            yield {"setting": label, "failed": str(error)[-400:]}
            continue
        # Loading is left out: real weights are drawn, which takes temporaries that a trace does not have.
        phases = [phase for phase in real if phase != "load"]
        yield _row(f"{label}, traced", {phase: [fake[phase], real[phase][1]] for phase in phases})


def _faked(request: TraceRequest) -> dict[str, int]:
    from launcher.memory.trace_profile_torch import tracked_peaks
    from launcher.memory.trace_torch import record

    return tracked_peaks(record(request)[0])


def _row(label: str, pairs: dict[str, list[int]]) -> dict[str, Any]:
    errors = {name: tracked / profiled - 1 for name, (tracked, profiled) in pairs.items()}
    peak_tracked, peak_profiled = (max(pair[side] for pair in pairs.values()) for side in (0, 1))
    peak_error = peak_tracked / peak_profiled - 1
    print(
        f"{label:42s} peak {peak_error:+8.3%}   " + "  ".join(f"{k} {v:+.2%}" for k, v in errors.items()),
        flush=True,
    )
    return {"setting": label, "bytes": pairs, "errors": errors, "peak_error": peak_error}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One setting of the grid."""

    model: str
    method: str
    checkpointing: bool
    precision: str
    backend: str
    num_ranks: int

    def __str__(self) -> str:
        """As printed."""
        where = "single" if self.num_ranks == 1 else f"{self.backend} x{self.num_ranks}"
        keeps = "checkpointing" if self.checkpointing else "plain"
        return f"{self.model.rpartition('/')[2]} {self.method} {keeps} {self.precision} {where}"


def grid() -> Iterator[Cell]:
    """One process and FSDP2, bf16 first, then fp32; the other backends in bf16, each model twice; offloading
    and packed weights, some models.
    """  # noqa: D205
    wholly = [(p, place) for p in ("bf16", "fp32") for place in (("single_gpu", 1), ("fsdp2", 4))]
    partly = [("bf16", (backend, 4)) for backend in ("multi_gpu", "zero1", "zero2", "zero3")]
    for precision, (backend, num_ranks) in wholly + partly:
        for model in GRID:
            for method in ("full", "lora"):
                for checkpointing in (False, True):
                    if (precision, (backend, num_ranks)) in partly and checkpointing != (method == "lora"):
                        continue
                    yield Cell(
                        model=model,
                        method=method,
                        checkpointing=checkpointing,
                        precision=precision,
                        backend=backend,
                        num_ranks=num_ranks,
                    )

    for backend in OFFLOADED:
        for model in SOME:
            yield _cell(model, "full", backend)
            yield _cell(model, "lora", backend)
    for backend in ("single_gpu", "multi_gpu", "zero2", "zero2_offload"):
        for model in SOME[1:]:
            yield _cell(model, "qlora", backend)


def _cell(model: str, method: str, backend: str) -> Cell:
    """Full training without checkpointing, adapters with it; four ranks, but for one card."""
    is_whole = method == "full"
    return Cell(
        model=model,
        method=method,
        checkpointing=not is_whole,
        precision="bf16",
        backend=backend,
        num_ranks=1 if backend == "single_gpu" else 4,
    )


def setting_of(cell: Cell) -> tuple[Setting, dict[str, Any], dict[str, Any]]:
    """The estimate's setting, the configuration and the adapter's options. QLoRA: LoRA on packed weights."""
    config = catalogue.config(cell.model)
    assert config is not None
    task = "classification" if config["model_type"] in ENCODERS else "causal_lm"
    shape = shape_of(config, task=task)
    method, is_packed = ("lora", True) if cell.method == "qlora" else (cell.method, False)
    options = METHODS.get(method).options(method=method)
    found = count(options, shape)
    adapter = Adapter(
        method=method,
        num_params=found.num_params,
        rank=found.rank,
        targets=found.targets,
        head_copy_params=found.head_copy_params,
    )
    rows, length = GRID[cell.model]
    kind = cell.backend.partition("_")[0]
    half = method == "lora" and cell.precision == "bf16"
    setting = Setting(
        shape=shape,
        method=method,
        adapter=None if method == "full" else adapter,
        micro_batch=rows,
        seq_len=length,
        weights_dtype="bfloat16" if half else "float32",
        precision=cell.precision,  # type: ignore[arg-type]
        quantisation="nf4" if is_packed else "none",
        double_quant=is_packed,
        checkpointing="full" if cell.checkpointing else "none",
        attention="sdpa" if "sdpa" in shape.attention_kernels else "eager",
        backend=cell.backend,
        sharding_kind=kind if kind in DIVIDED else "none",  # type: ignore[arg-type]
        sharding=BACKENDS.get(cell.backend).sharding,
        num_ranks=cell.num_ranks,
    )
    return setting, dict(config), options.model_dump()


def traced(cell: Cell) -> tuple[Breakdown, Breakdown, list[list[Any]]]:
    """Estimate, trace, and the largest tensors at the trace's peak (at its larger depth)."""
    from launcher.memory.trace_torch import record, summary

    setting, config, adapter = setting_of(cell)
    request = request_of(setting, config, adapter=adapter)
    found, log = [], None
    for depth in depths_of(request):
        log, layers = record(request, depth=depth)
        found.append(DepthTrace(**summary(log, layers)))
    truth = breakdown(request, found, num_layers(config))
    assert log is not None
    mark = truth.peak.terms[0].formula.rpartition(" at ")[2]
    largest = [
        [tag, size, birth.origin, birth.shape, birth.dtype] for birth, tag, size in log.live_at_peak(mark)
    ]
    return estimate(setting), truth, largest[:25]


def against_trace(lines: Path | None, only: str) -> list[dict[str, Any]]:
    """One row a cell: the estimate's error at the peak and in every phase."""
    rows = []
    for cell in (each for each in grid() if re.search(only, str(each))):
        try:
            guess, truth, largest = traced(cell)
        except Exception as error:  # a cell that cannot be traced is a row too
            print(f"{cell!s:60s} not traced: {type(error).__name__}: {str(error)[:200]}", flush=True)
            rows.append({"setting": str(cell), "failed": str(error)[:400]})
            continue
        error = guess.peak_bytes / truth.peak_bytes - 1
        phases = {p.name: p.num_bytes for p in truth.phases}
        guessed = {p.name: p.num_bytes for p in guess.phases}
        print(
            f"{cell!s:55s} trace {truth.peak_bytes / 2**30:7.3f} GiB ({truth.peak.name})  "
            f"estimate {error:+7.2%} ({guess.peak.name})  "
            + " ".join(f"{n} {guessed[n] / size - 1:+.1%}" for n, size in phases.items() if n in guessed),
            flush=True,
        )
        row = {"setting": str(cell), "trace": phases, "estimate": guessed, "peak_error": error}
        rows.append(row)
        if lines is not None:
            detail = {"trace_terms": _terms(truth), "estimate_terms": _terms(guess), "largest": largest}
            with lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row | detail) + "\n")
    return rows


def _terms(found: Breakdown) -> dict[str, dict[str, int]]:
    return {phase.name: {term.name: term.num_bytes for term in phase.terms} for phase in found.phases}


def timed(only: str) -> Iterator[dict[str, Any]]:
    """A 7B model's trace as `launcher plan` runs it: a process of its own, imports included."""
    config = catalogue.config("huggyllama/llama-7b")
    assert config is not None
    for backend in TRACED_BACKENDS:
        for method in ("lora", "full"):
            if not re.search(only, label := f"llama-7b {method} {backend}"):
                continue
            request = TraceRequest(
                config=config,
                adapter={"method": method},
                seq_len=1024,
                weights_dtype="bfloat16" if method == "lora" else "float32",
                precision="bf16",
                checkpointing=True,
                backend=backend,
                num_ranks=1 if backend == "single_gpu" else 8,
            )
            start, before = time.monotonic(), os.times()
            found = trace(request)
            seconds, after = time.monotonic() - start, os.times()
            work = after.children_user + after.children_system
            work -= before.children_user + before.children_system
            peak = found.peak_bytes
            print(
                f"{label:32s} {seconds:6.1f} s, {work:5.1f} s of a core, {peak / 2**30:7.3f} GiB", flush=True
            )
            yield {"setting": label, "seconds": seconds, "core_seconds": work, "peak_bytes": peak}


def _summary(rows: list[dict[str, Any]], bound: float) -> dict[str, Any]:
    """Of the errors at the peak, and of all phases where two runs are compared."""
    measured = [row for row in rows if "failed" not in row]
    if measured and "seconds" in measured[0]:
        worst = max(row["seconds"] for row in measured)
        cores = max(row["core_seconds"] for row in measured)
        return {"rows": len(rows), "bound": bound, "worst_seconds": worst, "worst_core_seconds": cores}
    peaks = sorted(abs(row["peak_error"]) for row in measured)
    phases = [abs(error) for row in measured for error in row.get("errors", {}).values()]
    found = {
        "rows": len(rows),
        "failed": len(rows) - len(measured),
        "bound": bound,
        "within_bound": sum(error <= bound for error in peaks),
        "median_abs_peak_error": statistics.median(peaks) if peaks else None,
        "worst_abs_peak_error": peaks[-1] if peaks else None,
    }
    if phases:
        inside = sum(error <= bound for error in phases)
        found |= {"phases": len(phases), "phases_within_bound": inside, "worst_abs_error": max(phases)}
    return found


def _collected(found: Any) -> tuple[list[dict[str, Any]], bool]:
    """Every row, or those that were there when somebody pressed Ctrl-C."""
    rows: list[dict[str, Any]] = []
    try:
        for row in found:
            rows.append(row)
    except KeyboardInterrupt:
        return rows, False
    return rows, True


def _beside(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Settings that were not measured again keep their rows."""
    again = {row["setting"] for row in new}
    return [row for row in old if row["setting"] not in again] + new


_PARTS: dict[str, tuple[str, float]] = {
    "profiler": ("tracker against torch.profiler", PROFILER_BOUND),
    "traced": ("trace against torch.profiler", PROFILER_BOUND),
    "estimate": ("estimate against trace", ESTIMATE_BOUND),
    "time": ("time of a 7B trace", TIME_BOUND_S),
}


def main() -> int:
    """Print the tables and keep them with hardware, versions and date; a part alone replaces its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=tuple(_PARTS))
    parser.add_argument("--cells", default="", help="only settings whose name this expression finds")
    parser.add_argument("--lines", type=Path, help="file for every cell's terms")
    parser.add_argument("--no-save", action="store_true", help="print only")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    runs: dict[str, Callable[[], Any]] = {
        "profiler": lambda: against_profiler(arguments.cells),
        "traced": lambda: without_ranks(arguments.cells),
        "estimate": lambda: against_trace(arguments.lines, arguments.cells),
        "time": lambda: timed(arguments.cells),
    }
    figures: dict[str, Any] = {}
    for part in [arguments.only] if arguments.only else _PARTS:
        name, bound = _PARTS[part]
        rows, is_whole = _collected(runs[part]())
        if arguments.cells or not is_whole:
            rows = _beside(saved("memory_trace").get(name, {}).get("settings", []), rows)
        figures[name] = _summary(rows, bound) | {"settings": rows}
        print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in figures[name].items() if k != "settings"))
    if not arguments.no_save:
        print(save("memory_trace", saved("memory_trace") | figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The live-byte tracker against torch.profiler's memory events, and the closed form against the trace.

`--only profiler`: real runs on this machine's CPU, every phase, every rank; bound 2 %.
`--only estimate`: peaks over a grid of public models, without weights; bound 3 %. `--lines FILE` notes
every phase of every setting as it is found.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.paired import save
from launcher.adapters.count import count
from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.setting import Adapter, Setting
from launcher.memory.trace import DepthTrace, breakdown, depths, num_layers
from launcher.memory.trace_request import TraceRequest, request_of
from launcher.models import catalogue
from launcher.models.read_shape import shape_of

PROFILER_BOUND, ESTIMATE_BOUND = 0.02, 0.03
_SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500}
_ENCODER = _SIZES | {"intermediate_size": 256, "max_position_embeddings": 258}
_DECODER = _SIZES | {"intermediate_size": 128, "num_key_value_heads": 2, "max_position_embeddings": 256}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2}
TINY: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **_ENCODER},
    "roberta": {"model_type": "roberta", **_ENCODER, "pad_token_id": 1, "bos_token_id": 0},
    "gpt2": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500, **_ENDS},
    "llama": {"model_type": "llama", **_DECODER},
    "qwen2": {"model_type": "qwen2", **_DECODER},
    "bloom": {"model_type": "bloom", "hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500},
}
ENCODERS = ("bert", "roberta", "distilbert", "xlm-roberta")
BACKENDS_X2 = ("multi_gpu", "fsdp2", "zero2", "zero3")
GRID = {
    "google-bert/bert-base-uncased": (16, 128),
    "FacebookAI/roberta-large": (8, 128),
    "openai-community/gpt2": (4, 512),
    "huggyllama/llama-7b": (1, 1024),
    "Qwen/Qwen2.5-1.5B": (2, 1024),
    "bigscience/bloom-560m": (2, 512),
}


def tiny_request(name: str, method: str, *, checkpointing: bool, **changes: Any) -> TraceRequest:
    """A small model of the architecture, 2 x 64 tokens, fp32, on CPU kernels."""
    return TraceRequest(
        config=TINY[name],
        task="classification" if name in ENCODERS else "causal_lm",
        adapter={"method": method},
        micro_batch=2,
        seq_len=64,
        checkpointing=checkpointing,
        attention="eager" if name == "bloom" else "sdpa",
        kernels="cpu",
        **changes,
    )


def single_requests() -> Iterator[tuple[str, TraceRequest]]:
    """Prefix tuning needs a cache of keys and values: decoders only, and never with checkpointing."""
    for name in TINY:
        for method in ("full", "lora", "prefix"):
            for checkpointing in (False, True):
                if method == "prefix" and (checkpointing or name in ENCODERS):
                    continue
                label = f"{name} {method} {'checkpointing' if checkpointing else 'plain'}"
                yield label, tiny_request(name, method, checkpointing=checkpointing)


def sharded_request(backend: str, name: str = "llama") -> TraceRequest:
    """A small model over two ranks, with communication buffers of its size."""
    buckets = {"reduce_bucket_size": 100_000, "allgather_bucket_size": 100_000}
    options = buckets if backend.startswith("zero") else {}
    return tiny_request(
        name, "full", checkpointing=False, backend=backend, backend_options=options, num_ranks=2
    )


def compare_ranks(request: TraceRequest, *, timeout_s: float = 300.0) -> list[dict[str, list[int]]]:
    """Real ranks on this machine; each one's (tracked, profiled) bytes by phase."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    root = str(Path(__file__).resolve().parents[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(request.num_ranks)}
    shared |= {
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": root,
    }
    command = [sys.executable, "-W", "ignore", "-m", "launcher.memory.trace_profile_torch", request.to_json()]
    ranks = [
        subprocess.Popen(
            command,
            env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=root,
        )
        for rank in range(request.num_ranks)
    ]
    try:
        return [_answer(rank, timeout_s) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()


def compare_often(
    request: TraceRequest, *, bound: float = PROFILER_BOUND, tries: int = 3
) -> list[dict[str, list[int]]]:
    """`compare_ranks`, again where a figure is out of bounds: the lowest that the profiler saw counts.

    It misses what a collective's own thread frees, and so can only be too high.
    """
    found = compare_ranks(request)
    for _ in range(tries - 1):
        pairs = [pair for rank in found for pair in rank.values()]
        if all(abs(tracked / profiled - 1) <= bound for tracked, profiled in pairs):
            break
        for old, new in zip(found, compare_ranks(request), strict=True):
            for phase, (tracked, profiled) in new.items():
                assert tracked == old[phase][0], f"{phase}: the tracker does not repeat itself"
                old[phase] = [tracked, min(profiled, old[phase][1])]
    return found


def _answer(rank: "subprocess.Popen[str]", timeout_s: float) -> dict[str, list[int]]:
    out, err = rank.communicate(timeout=timeout_s)
    lines = [line for line in out.splitlines() if line.startswith('{"load"')]
    if not lines:
        raise RuntimeError(f"a rank ended with {rank.returncode}: {err[-2000:]}")
    found: dict[str, list[int]] = json.loads(lines[-1])
    return found


def against_profiler() -> list[dict[str, Any]]:
    """One row a setting and rank: the error of every phase."""
    from launcher.memory.trace_profile_torch import compare

    rows = []
    for label, request in single_requests():
        found = compare(request)
        rows.append(_row(label, {name: [each.tracked, each.profiled] for name, each in found.items()}))
    for backend in BACKENDS_X2:
        for rank, pairs in enumerate(compare_often(sharded_request(backend))):
            rows.append(_row(f"llama full {backend} x2, rank {rank}", pairs))
    return rows


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
    num_ranks: int

    def __str__(self) -> str:
        """As printed."""
        where = "single" if self.num_ranks == 1 else f"fsdp2 x{self.num_ranks}"
        keeps = "checkpointing" if self.checkpointing else "plain"
        return f"{self.model.rpartition('/')[2]} {self.method} {keeps} {self.precision} {where}"


def grid() -> Iterator[Cell]:
    """bf16 everywhere first, then fp32."""
    for precision in ("bf16", "fp32"):
        for num_ranks in (1, 4):
            for model in GRID:
                for method in ("full", "lora"):
                    for checkpointing in (False, True):
                        yield Cell(
                            model=model,
                            method=method,
                            checkpointing=checkpointing,
                            precision=precision,
                            num_ranks=num_ranks,
                        )


def setting_of(cell: Cell) -> tuple[Setting, dict[str, Any], dict[str, Any]]:
    """The estimate's setting, the configuration and the adapter's options."""
    config = catalogue.config(cell.model)
    assert config is not None
    task = "classification" if config["model_type"] in ENCODERS else "causal_lm"
    shape = shape_of(config, task=task)
    options = METHODS.get(cell.method).options(method=cell.method)
    found = count(options, shape)
    adapter = Adapter(
        method=cell.method,
        num_params=found.num_params,
        rank=found.rank,
        targets=found.targets,
        head_copy_params=found.head_copy_params,
    )
    rows, length = GRID[cell.model]
    backend = "single_gpu" if cell.num_ranks == 1 else "fsdp2"
    half = cell.method == "lora" and cell.precision == "bf16"
    setting = Setting(
        shape=shape,
        method=cell.method,
        adapter=None if cell.method == "full" else adapter,
        micro_batch=rows,
        seq_len=length,
        weights_dtype="bfloat16" if half else "float32",
        precision=cell.precision,  # type: ignore[arg-type]
        checkpointing="full" if cell.checkpointing else "none",
        attention="sdpa" if "sdpa" in shape.attention_kernels else "eager",
        backend=backend,
        sharding_kind="none" if cell.num_ranks == 1 else "fsdp2",
        sharding=BACKENDS.get(backend).sharding,
        num_ranks=cell.num_ranks,
    )
    return setting, dict(config), options.model_dump()


def traced(cell: Cell) -> tuple[Breakdown, Breakdown, list[list[Any]]]:
    """Estimate, trace, and the largest tensors at the trace's peak (at its larger depth)."""
    from launcher.memory.trace_torch import record, summary

    setting, config, adapter = setting_of(cell)
    request = request_of(setting, config, adapter=adapter)
    found, log = [], None
    for depth in depths(config):
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


def _summary(rows: list[dict[str, Any]], bound: float) -> dict[str, Any]:
    errors = sorted(abs(row["peak_error"]) for row in rows if "peak_error" in row)
    return {
        "rows": len(rows),
        "bound": bound,
        "within_bound": sum(error <= bound for error in errors),
        "median_abs_peak_error": statistics.median(errors) if errors else None,
        "worst_abs_peak_error": errors[-1] if errors else None,
    }


def main() -> int:
    """Print both tables and keep them with hardware, versions and date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("profiler", "estimate"))
    parser.add_argument("--cells", default="", help="only cells of the grid whose name this expression finds")
    parser.add_argument("--lines", type=Path, help="file for every cell's terms")
    parser.add_argument("--no-save", action="store_true", help="print only")
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    if arguments.only != "estimate":
        rows = against_profiler()
        figures["tracker against torch.profiler"] = _summary(rows, PROFILER_BOUND) | {"settings": rows}
    if arguments.only != "profiler":
        rows = against_trace(arguments.lines, arguments.cells)
        figures["estimate against trace"] = _summary(rows, ESTIMATE_BOUND) | {"settings": rows}
    for name, found in figures.items():
        print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in found.items() if k != "settings"))
    if not arguments.no_save:
        print(save("memory-trace" if not arguments.only else f"memory-trace-{arguments.only}", figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measured against predicted memory on this machine's card: about ten settings, random weights, no network.

Those without published figures come first. Each runs in a process of its own and reads
`torch.cuda.max_memory_allocated` by phase; the closed form and the trace predict the same figures. Without
a card it says why it skips. `--device cpu` runs the same settings shrunk, to try this file: it measures the
process's resident memory there, which is not what is predicted.
"""

import argparse
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launcher.adapters.count import count
from launcher.adapters.options import METHODS
from launcher.backends.options import BACKENDS
from launcher.errors import LauncherError
from launcher.memory.breakdown import Breakdown
from launcher.memory.estimate import estimate
from launcher.memory.setting import Adapter, Setting
from launcher.memory.trace import trace
from launcher.memory.trace_request import TraceRequest, request_of
from launcher.models import catalogue
from launcher.models.read_shape import shape_of

NEEDS = {"torch": (2, 11), "transformers": (5, 17)}
TIMEOUT_S = 120.0
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Check:
    """One setting to measure. `changes` are fields of the estimate's `Setting`."""

    name: str
    model: str
    method: str = "full"
    rows: int = 4
    length: int = 256
    backend: str = "single_gpu"
    package: str = ""
    changes: dict[str, Any] = field(default_factory=dict)


_CHECKPOINTED, _PLAIN = {"checkpointing": "full"}, {"checkpointing": "none"}
_NF4 = {"quantisation": "nf4", "double_quant": True, "weights_dtype": "bfloat16"}
CHECKS = (
    Check(name="encoder, AMP", model="google-bert/bert-base-uncased", rows=32, length=128, changes=_PLAIN),
    Check(name="encoder, AMP, large", model="FacebookAI/roberta-large", rows=16, length=128, changes=_PLAIN),
    Check(name="decoder, nothing recomputed", model="openai-community/gpt2", length=512, changes=_PLAIN),
    Check(name="fsdp2, one rank", model="Qwen/Qwen2.5-0.5B", backend="fsdp2", changes=_CHECKPOINTED),
    Check(
        name="zero2, one rank",
        model="Qwen/Qwen2.5-0.5B",
        backend="zero2",
        package="deepspeed",
        changes=_CHECKPOINTED,
    ),
    Check(
        name="zero3, one rank",
        model="Qwen/Qwen2.5-0.5B",
        backend="zero3",
        package="deepspeed",
        changes=_CHECKPOINTED,
    ),
    Check(
        name="chunked loss",
        model="Qwen/Qwen2.5-0.5B",
        length=1024,
        changes=_CHECKPOINTED | {"loss": "chunked", "loss_chunk_tokens": 256},
    ),
    Check(name="full, fused AdamW", model="Qwen/Qwen2.5-0.5B", length=1024, changes=_CHECKPOINTED),
    Check(
        name="full, foreach AdamW",
        model="Qwen/Qwen2.5-0.5B",
        changes=_CHECKPOINTED | {"optimizer": "adamw_foreach"},
    ),
    Check(
        name="lora, sdpa",
        model="TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
        method="lora",
        length=1024,
        changes=_CHECKPOINTED | {"weights_dtype": "bfloat16"},
    ),
    Check(
        name="lora, eager attention",
        model="TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
        method="lora",
        length=1024,
        changes=_CHECKPOINTED | {"weights_dtype": "bfloat16", "attention": "eager"},
    ),
    Check(
        name="lora beside 4-bit weights",
        model="TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
        method="lora",
        package="bitsandbytes",
        length=512,
        changes=_CHECKPOINTED | _NF4,
    ),
)
_ENCODERS = ("bert", "roberta")
_SHRUNK = {
    **{"hidden_size": 64, "n_embd": 64, "num_attention_heads": 4, "n_head": 4, "num_key_value_heads": 2},
    **{"num_hidden_layers": 2, "n_layer": 2, "intermediate_size": 128, "vocab_size": 500, "head_dim": 16},
    **{"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "max_window_layers": 2},
}


def skip_reason(device: str) -> str:
    """Why nothing can be measured here; empty where it can."""
    for name, floor in NEEDS.items():
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
        found = _version(name)
        if found < floor:
            return f"{name} {'.'.join(map(str, found))} is older than {'.'.join(map(str, floor))}"
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no CUDA device"
    return ""


def _version(name: str) -> tuple[int, int]:
    from importlib.metadata import version

    major, minor = version(name).split(".")[:2]
    return int(major), int(minor)


def config_of(check: Check, device: str) -> dict[str, Any]:
    """The public configuration; shrunk on a CPU."""
    found = catalogue.config(check.model)
    assert found is not None, f"{check.model} is not in the catalogue"
    config = dict(found)
    return config if device == "cuda" else config | {k: v for k, v in _SHRUNK.items() if k in config}


def setting_of(check: Check, config: dict[str, Any], device: str) -> Setting:
    """What the closed form and, through it, the trace are asked. bf16 autocast, one rank."""
    task = "classification" if config["model_type"] in _ENCODERS else "causal_lm"
    shape = shape_of(config, task=task)
    found = count(METHODS.get(check.method).options(method=check.method), shape)
    adapter = Adapter(
        method=check.method, num_params=found.num_params, rank=found.rank, targets=found.targets
    )
    whole: dict[str, Any] = {
        "shape": shape,
        "method": check.method,
        "adapter": None if check.method == "full" else adapter,
        "micro_batch": check.rows if device == "cuda" else 2,
        "seq_len": check.length if device == "cuda" else 32,
        "weights_dtype": "float32",
        "backend": check.backend,
        "sharding_kind": "none" if check.backend == "single_gpu" else check.backend,
        "sharding": BACKENDS.get(check.backend).sharding,
    }
    return Setting(**whole | check.changes)


def request_for(check: Check, device: str) -> tuple[Setting, TraceRequest]:
    """The same setting for both predictions and for the run itself."""
    config = config_of(check, device)
    setting = setting_of(check, config, device)
    adapter = METHODS.get(check.method).options(method=check.method).model_dump()
    return setting, request_of(setting, config, adapter=adapter)


def measure(request: TraceRequest, device: str) -> dict[str, Any]:
    """Run it in this process: bytes by phase, the peak allocated, the peak reserved."""
    import torch
    import torch.distributed as dist

    from launcher.memory.trace_torch import record
    from launcher.train.memory_watch import MemoryWatch

    if BACKENDS.get(request.backend).needs_group:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": "0"}
        os.environ |= {"WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    place = torch.device("cuda", 0) if device == "cuda" else torch.device("cpu")
    watch = MemoryWatch(place)
    record(request, fake=False, around=watch.phase, device=str(place))
    found = watch.result()
    if dist.is_initialized():
        dist.destroy_process_group()
    return found


def measure_apart(check: Check, device: str) -> dict[str, Any]:
    """The same in a fresh process, so that nothing of an earlier setting is counted."""
    command = [sys.executable, "-W", "ignore", __file__, "--one", check.name, "--device", device]
    quiet = {"HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": device}
    done = subprocess.run(
        command, env=os.environ | quiet, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][:300])
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def row_of(
    check: Check, measured: dict[str, Any], guess: Breakdown, traced: Breakdown | None
) -> dict[str, Any]:
    """Measured beside predicted; errors are predicted / measured - 1."""
    allocated = measured.get("peak_allocated_bytes")
    reserved = measured.get("peak_reserved_bytes")
    row: dict[str, Any] = {"setting": check.name, "model": check.model, "measured": measured}
    row |= {"estimate_bytes": guess.peak_bytes, "trace_bytes": traced.peak_bytes if traced else None}
    row |= {"estimate_phases": {phase.name: phase.num_bytes for phase in guess.phases}}
    if allocated:
        row["estimate_error"] = guess.peak_bytes / allocated - 1
        row["trace_error"] = traced.peak_bytes / allocated - 1 if traced else None
    if reserved:
        low, high = guess.reserved_bytes
        row["reserved_in_range"] = low <= reserved <= high
    return row


def line_of(row: dict[str, Any]) -> str:
    """One line of the table."""
    if "failed" in row:
        return f"{row['setting']:30s} failed: {row['failed']}"
    if "skipped" in row:
        return f"{row['setting']:30s} skipped: {row['skipped']}"
    measured = row["measured"]
    peak = measured.get("peak_allocated_bytes") or measured.get("peak_resident_bytes", 0)
    kind = "allocated" if "peak_allocated_bytes" in measured else "resident"
    errors = "  ".join(
        f"{name} {row[f'{name}_error']:+.1%}"
        for name in ("estimate", "trace")
        if row.get(f"{name}_error") is not None
    )
    trace_gib = f"{row['trace_bytes'] / GIB:.3f}" if row["trace_bytes"] else "none"
    predicted = f"estimate {row['estimate_bytes'] / GIB:.3f} trace {trace_gib} GiB"
    return f"{row['setting']:30s} {kind} {peak / GIB:.3f} GiB  {predicted}  {errors}"


def run(checks: Sequence[Check], device: str) -> list[dict[str, Any]]:
    """Every check in turn on the card; the traces run beside them on the CPU."""
    with ThreadPoolExecutor(max_workers=max(1, min(4, (os.cpu_count() or 2) // 2))) as pool:
        traces = {check.name: pool.submit(_trace, check, device) for check in checks if not _missing(check)}
        return [_one(check, device, traces.get(check.name)) for check in checks]


def _missing(check: Check) -> str:
    absent = check.package and importlib.util.find_spec(check.package) is None
    return f"{check.package} is not installed" if absent else ""


def _trace(check: Check, device: str) -> Breakdown:
    _, request = request_for(check, device)
    return trace(replace(request, compute_capability=_capability(device)))


def _capability(device: str) -> tuple[int, int]:
    import torch

    return torch.cuda.get_device_capability() if device == "cuda" else (8, 0)


def _one(check: Check, device: str, traced: "Future[Breakdown] | None") -> dict[str, Any]:
    row: dict[str, Any] = {"setting": check.name}
    if traced is None:
        row["skipped"] = _missing(check)
    else:
        try:
            measured = measure_apart(check, device)
            row = row_of(check, measured, estimate(request_for(check, device)[0]), _result(traced))
        except (RuntimeError, LauncherError, subprocess.TimeoutExpired) as error:
            row["failed"] = str(error)[:400]
    print(line_of(row), flush=True)
    return row


def _result(traced: "Future[Breakdown]") -> Breakdown | None:
    try:
        return traced.result()
    except LauncherError as error:
        print(f"  {error}", file=sys.stderr)
        return None


def main() -> int:
    """Print the table and keep it; exit code 1 where a setting failed to run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default="", help="only settings whose name holds this text")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if reason := skip_reason(arguments.device):
        print(f"gpu-check: skipped: {reason}")
        return 0
    if arguments.one:
        check = next(each for each in CHECKS if each.name == arguments.one)
        print(json.dumps(measure(request_for(check, arguments.device)[1], arguments.device)))
        return 0
    start = time.perf_counter()
    rows = run([each for each in CHECKS if arguments.only in each.name], arguments.device)
    print(f"{len(rows)} settings in {time.perf_counter() - start:.0f} s")
    if arguments.device == "cuda":
        from benchmarks.paired import save

        print(save("gpu-check", {"rows": rows}))
    return int(any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())

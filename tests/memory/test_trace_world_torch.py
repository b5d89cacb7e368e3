"""The trace of several ranks on one process: each backend holds the share that it says."""

import os
from dataclasses import replace
from typing import Any

import pytest
import torch.distributed as dist

from launcher.memory.trace import DepthTrace, breakdown
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_torch import record, summary

LLAMA: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4},
    **{"num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 512, "max_position_embeddings": 256},
}
NUM_PARAMS = 4 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 512 * 64 + 64
ZERO = {"reduce_bucket_size": 50_000, "allgather_bucket_size": 50_000}
ZERO3 = ZERO | {"stage3_param_persistence_threshold": 100, "stage3_prefetch_bucket_size": 20_000}
OPTIONS: dict[str, dict[str, Any]] = {"zero1": ZERO, "zero2": ZERO, "zero3": ZERO3}
RANKS = 4


def _optimizer_phase(backend: str, **changes: Any) -> dict[str, int]:
    request = TraceRequest(
        config=LLAMA,
        micro_batch=1,
        seq_len=32,
        kernels="cpu",
        backend=backend,
        backend_options=OPTIONS.get(backend, {}),
        num_ranks=RANKS,
    )
    request = replace(request, **changes)
    log, layers = record(request)
    found = breakdown(request, [DepthTrace(**summary(log, layers))], layers)
    phase = next(each for each in found.phases if each.name == "optimizer")
    return {term.name: term.num_bytes for term in phase.terms}


@pytest.mark.parametrize(
    ("backend", "weights", "masters", "gradients", "states"),
    [
        ("multi_gpu", 4, 0, 4, 8),
        ("fsdp2", 4 / RANKS, 0, 4 / RANKS, 8 / RANKS),
        ("zero1", 4, 4 / RANKS, 4 / RANKS, 8 / RANKS),
        ("zero2", 4, 4 / RANKS, 4 / RANKS, 8 / RANKS),
        ("zero3", 4 / RANKS, 4 / RANKS, 4 / RANKS, 8 / RANKS),
    ],
)
def test_a_rank_steps_on_its_share(
    backend: str, weights: float, masters: float, gradients: float, states: float
) -> None:
    """Bytes a parameter: weights, the copies that the optimizer steps on, gradients, two moments."""
    found = _optimizer_phase(backend)
    assert found["weights"] == pytest.approx(weights * NUM_PARAMS, rel=0.03)
    assert found.get("master weights", 0) == pytest.approx(masters * NUM_PARAMS, rel=0.03)
    assert found["gradients"] == pytest.approx(gradients * NUM_PARAMS, rel=0.03)
    assert found["optimizer states"] == pytest.approx(states * NUM_PARAMS, rel=0.03)


@pytest.mark.parametrize("backend", ["zero2", "zero3"])
def test_a_loss_scale_and_windows_of_two_micro_batches_are_traced(backend: str) -> None:
    found = _optimizer_phase(backend, precision="fp16", accumulation_steps=2)
    assert found["optimizer states"] == pytest.approx(8 * NUM_PARAMS / RANKS, rel=0.03)


def test_a_world_leaves_nothing_behind() -> None:
    before = dict(os.environ)
    for backend in ("zero3", "multi_gpu", "zero2"):
        _optimizer_phase(backend)
        assert not dist.is_initialized()
    assert dict(os.environ) == before

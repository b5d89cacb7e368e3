"""The trace of several ranks on one process: each backend holds the share that it says."""

import os
from dataclasses import replace
from typing import Any

import pytest
import torch.distributed as dist

from launcher.memory.trace import DepthTrace, breakdown
from launcher.memory.trace_request import TraceRequest
from launcher.memory.trace_torch import record, summary

# torch 2.13 on DDP's broadcast_buffers, deepspeed 0.19 on names of collectives
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
LLAMA: dict[str, Any] = {
    **{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 4, "intermediate_size": 1024, "vocab_size": 2048},
    "max_position_embeddings": 256,
}
NUM_PARAMS = 2 * (4 * 512 * 512 + 3 * 512 * 1024 + 2 * 512) + 2 * 2048 * 512 + 512
ZERO = {"reduce_bucket_size": 2_000_000, "allgather_bucket_size": 2_000_000}
ZERO3 = ZERO | {"stage3_param_persistence_threshold": 100, "stage3_prefetch_bucket_size": 500_000}
OPTIONS: dict[str, dict[str, Any]] = {"zero1": ZERO, "zero2": ZERO, "zero3": ZERO3}
RANKS = 4
WORLD = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


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
    before = [os.environ.get(name) for name in WORLD]
    log, layers = record(request)
    assert [os.environ.get(name) for name in WORLD] == before  # a world leaves nothing behind
    assert not dist.is_initialized()
    found = breakdown(request, [DepthTrace(**summary(log, layers))], layers)
    phase = next(each for each in found.phases if each.name == "optimizer")
    return {term.name: term.num_bytes for term in phase.terms}


@pytest.mark.parametrize(
    ("backend", "weights", "masters", "states"),
    [
        ("multi_gpu", 4, 0, 8),
        ("fsdp2", 4 / RANKS, 0, 8 / RANKS),
        ("zero1", 4, 4 / RANKS, 8 / RANKS),
        ("zero2", 4, 4 / RANKS, 8 / RANKS),
        ("zero3", 4 / RANKS, 4 / RANKS, 8 / RANKS),
    ],
)
def test_a_rank_steps_on_its_share(backend: str, weights: float, masters: float, states: float) -> None:
    """Bytes a parameter: weights, the copies that the optimizer steps on, two moments."""
    found = _optimizer_phase(backend)
    assert found["weights"] == pytest.approx(weights * NUM_PARAMS, rel=0.05)
    assert found.get("master weights", 0) == pytest.approx(masters * NUM_PARAMS, rel=0.05)
    assert found["optimizer states"] == pytest.approx(states * NUM_PARAMS, rel=0.05)


def test_a_loss_scale_and_windows_of_two_micro_batches_are_traced() -> None:
    found = _optimizer_phase("zero2", precision="fp16", accumulation_steps=2)
    assert found["optimizer states"] == pytest.approx(8 * NUM_PARAMS / RANKS, rel=0.05)


def test_weights_that_an_evaluation_leaves_on_their_way_do_not_hinder_a_save() -> None:
    """Only weights beyond what DeepSpeed keeps for a reuse are fetched ahead: a wide model shows it."""
    wide = LLAMA | {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 4}
    found = _optimizer_phase(
        "zero3",
        config=wide,
        adapter={"method": "lora"},
        weights_dtype="bfloat16",
        precision="bf16",
        checkpointing=True,
        backend_options={},
    )
    assert found["adapter"] < found["weights"]
